import socket

import pytest

from realcluster import slots
from realcluster.failure import ClusterError
from realcluster.layout import MAX_NODES
from realcluster.slots import Slot


def every_port_is_free(port: int) -> bool:
    return True


def test_first_slot_on_an_empty_machine() -> None:
    chosen = slots.choose(2, ["127.0.0.1/8", "192.0.2.2/24"], every_port_is_free)
    assert chosen == Slot(0)
    assert chosen.service_address == "10.100.0.1"
    assert chosen.pods(0) == "10.100.1.0/24"


@pytest.mark.parametrize(
    "taken",
    ["10.100.0.1/32", "10.100.7.0/24", "10.96.0.0/12"],
    ids=["another cluster's service", "pods", "a wide route"],
)
def test_slots_whose_addresses_are_taken_are_passed_over(taken: str) -> None:
    assert slots.choose(1, [taken], every_port_is_free).number > 0


def test_wide_route_passes_over_all_that_it_covers() -> None:
    assert slots.choose(1, ["10.96.0.0/12"], every_port_is_free) == Slot(12)


def test_slot_with_one_port_in_use_is_passed_over() -> None:
    busy = Slot(0).kubelet_health_port(2)
    assert slots.choose(2, [], lambda port: port != busy) == Slot(0)
    assert slots.choose(3, [], lambda port: port != busy) == Slot(1)


def test_no_slot_left() -> None:
    with pytest.raises(ClusterError, match="none of 100"):
        slots.choose(1, ["10.0.0.0/8"], every_port_is_free)


def test_slots_share_no_port_even_when_full() -> None:
    ports = [port for number in range(slots.SLOTS) for port in Slot(number).ports(MAX_NODES)]
    assert len(ports) == len(set(ports))
    assert max(ports) < 30000


def test_pod_networks_do_not_meet_the_slot_s_other_addresses() -> None:
    last = Slot(3).pods(MAX_NODES - 1)
    assert last == "10.103.40.0/24"
    assert Slot(3).spare_address == "10.103.255.1"


def test_port_that_somebody_listens_on_is_not_free() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        port = listener.getsockname()[1]
        assert not slots.can_listen(port)
    assert slots.can_listen(port)
