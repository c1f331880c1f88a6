"""What a container gets for CDI ids."""

import msgspec
import pytest

from dragoon.errors import CdiError
from dragoon.prepare import cdi
from dragoon.prepare.cdi import Device, DeviceNode, Edits, Mount, Spec
from dragoon.prepare.injection import inject

KIND = "gpu.dragoon.dev/claim"


def spec(uid: str, *devices: str) -> Spec:
    return cdi.claim_spec(
        KIND,
        [
            Device(
                f"{uid}_{name}",
                Edits(
                    env=(f"{name.upper()}=of-{uid}",),
                    mounts=(Mount(f"/host/{uid}-{name}", f"/dev/dragoon/{name}"),),
                ),
            )
            for name in devices
        ],
        Edits(device_nodes=(DeviceNode("/dev/nvidiactl"),)),
    )


ONE = spec("1a", "g", "h")
TWO = spec("2b", "i")
FILES = [cdi.encode(ONE), cdi.encode(TWO)]


def test_a_container_gets_only_what_it_asks_for() -> None:
    got = inject(FILES, [f"{KIND}=1a_h"])
    assert got.env == ("NVIDIA_VISIBLE_DEVICES=void", "H=of-1a")
    assert [mount.container_path for mount in got.mounts] == ["/dev/dragoon/h"]
    assert [node.path for node in got.device_nodes] == ["/dev/nvidiactl"]


def test_several_claims_in_one_container_stand_side_by_side() -> None:
    got = inject(FILES, [f"{KIND}=2b_i", f"{KIND}=1a_g", f"{KIND}=1a_h"])
    assert got.env == ("NVIDIA_VISIBLE_DEVICES=void", "I=of-2b", "G=of-1a", "H=of-1a")
    assert [node.path for node in got.device_nodes] == ["/dev/nvidiactl"]


def test_nothing_asked_for_is_nothing_given() -> None:
    assert inject(FILES, []).env == ()


def test_ids_that_nothing_offers_are_unresolvable_and_all_named() -> None:
    with pytest.raises(CdiError, match=r"unresolvable CDI devices .*=3c_g, .*=1a_z"):
        inject(FILES, [f"{KIND}=3c_g", f"{KIND}=1a_g", f"{KIND}=1a_z"])


def test_a_device_in_two_files_is_unresolvable() -> None:
    with pytest.raises(CdiError, match="unresolvable CDI devices"):
        inject([*FILES, cdi.encode(ONE)], [f"{KIND}=1a_g"])


def test_garbage_and_half_written_files_beside_ours_do_no_harm() -> None:
    beside = [b"", b"{]", FILES[0][:100], b'{"cdiVersion": "0.5.0", "kind": "x"}']
    assert inject([*beside, *FILES], [f"{KIND}=1a_g"]) == inject(FILES, [f"{KIND}=1a_g"])


def test_a_spec_of_an_unknown_version_is_not_used() -> None:
    newer = cdi.encode(msgspec.structs.replace(ONE, cdi_version="7.0.0"))
    with pytest.raises(CdiError, match="unresolvable"):
        inject([newer], [f"{KIND}=1a_g"])


def test_a_later_edit_replaces_an_earlier_one_of_the_same_name() -> None:
    first = Spec("0.5.0", KIND, (Device("a", Edits(env=("X=1",), mounts=(Mount("/1", "/m"),))),))
    second = Spec("0.5.0", KIND, (Device("b", Edits(env=("X=2",), mounts=(Mount("/2", "/m"),))),))
    got = inject([cdi.encode(first), cdi.encode(second)], [f"{KIND}=a", f"{KIND}=b"])
    assert got.env == ("X=2",)
    assert [mount.host_path for mount in got.mounts] == ["/2"]
