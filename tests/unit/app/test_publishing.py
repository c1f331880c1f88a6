"""What publishing learns from the journal of prepare."""

from pathlib import Path
from typing import Any

from dragoon.app.config import PluginConfig
from dragoon.app.publishing import prepared
from dragoon.prepare.effects import HostEffects
from dragoon.prepare.journal import Entry, HeldDevice, Journal, State
from dragoon.prepare.mig import MigPart
from dragoon.prepare.paths import Paths
from dragoon.publish.holding import Prepared


def config(folder: Path) -> PluginConfig:
    return PluginConfig(state_dir=str(folder), cdi_root=str(folder / "cdi"))


def held(device: str, **part: Any) -> HeldDevice:
    return HeldDevice("g", "n/gpu", device, "0000:10:00.0", "GPU-0", f"x/y={device}", **part)


def write(folder: Path, *devices: HeldDevice) -> Path:
    """Journals one claim that holds the devices; answers where its file lies."""
    settings = config(folder)
    paths = Paths(settings.driver_name, folder, folder / "cdi")
    paths.journal_folder.mkdir(parents=True)
    entry = Entry(
        namespace="a",
        name="c",
        uid="u1",
        boot_id="b",
        state=State.PREPARED,
        devices=devices,
        steps=(),
    )
    Journal(HostEffects(), paths).begin(entry)
    return paths.journal("u1")


def test_a_node_without_a_journal_holds_nothing(tmp_path: Path) -> None:
    assert prepared(config(tmp_path)) == Prepared()


def test_only_instances_that_were_made_for_a_claim_are_ours(tmp_path: Path) -> None:
    write(
        tmp_path,
        held("whole"),
        held("mine", mig=MigPart("1g.10gb", 0, 1, uuid="MIG-1")),
        held("theirs", mig=MigPart("1g.10gb", 1, 1, made=False, uuid="MIG-2")),
    )
    assert prepared(config(tmp_path)) == Prepared(
        frozenset({"whole", "mine", "theirs"}), made=frozenset({"mine"})
    )


def test_a_journal_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    write(tmp_path, held("whole")).write_text("damaged")
    assert prepared(config(tmp_path)) is None
