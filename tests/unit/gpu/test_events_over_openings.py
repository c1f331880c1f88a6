"""Events that were raised just before the library is opened anew."""

from pathlib import Path

from dragoon.gpu.condition import EventKind
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.sim.hardware import Hardware


def test_what_was_raised_before_an_opening_ends_is_told_by_the_next_call(tmp_path: Path) -> None:
    state = tmp_path / "gpus.json"
    gpus = open_gpus("dgx-h100", state, beside_driver=True)
    try:
        first = gpus.inventory().gpus[0].address
        assert gpus.events.poll().renewed
        hardware = Hardware(state)
        hardware.raise_xid(0, 79)
        hardware.lose(1)
        for _ in range(2):  # the look after the one that misses a card opens the library anew
            assert gpus.inventory().lost
        polled = gpus.events.poll()
    finally:
        gpus.close()
    assert polled.renewed, "the event set of before went with its opening"
    found = [(one.kind, one.number) for one in polled.events if one.address == first]
    assert found == [(EventKind.XID, 79)]
