"""The story tells only what is true: each lie of a stage ends it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dragoon.api.claims import AllocatedDevice
from dragoon.app.demo import story
from dragoon.app.demo.stage import Answer, DemoError, Inside, Object
from dragoon.gpu.opening import open_gpus
from dragoon.prepare.cdi import Mount
from dragoon.prepare.injection import Injected
from dragoon.publish.slices import render

DRIVER = "gpu.dragoon.dev"


def node(machine: str) -> tuple[Object, ...]:
    gpus = open_gpus(machine, beside_driver=True)
    try:
        return render(gpus.inventory(), node="n1", driver=DRIVER)
    finally:
        gpus.close()


def inside(*devices: str) -> Inside:
    mounts = tuple(Mount("/h", f"/dev/dragoon/{device}", ("ro",)) for device in devices)
    return Inside(Injected(mounts=mounts), Path("/cdi/x.json"), '{"kind": "x"}')


@dataclass
class PaperStage:
    """A stage that says what it is told to say: a claim's devices by its name."""

    found: tuple[Object, ...]
    gives: dict[str, tuple[str, ...]]
    sees: dict[str, Inside]
    sees_again: Inside
    done: list[str] = field(default_factory=list)
    driver: str = DRIVER
    device_class: str = "sim.dragoon.dev"

    async def slices(self) -> tuple[Object, ...]:
        return self.found

    async def ask(self, claim: Object) -> Answer:
        given = self.gives.get(claim["metadata"]["name"], ())
        devices = tuple(AllocatedDevice("r", DRIVER, "n1/gpu", device) for device in given)
        return Answer(devices, ("because",))

    async def start_pod(self, claim: str) -> Inside:
        return self.sees[claim]

    async def end_pod(self, claim: str) -> None:
        self.done.append(claim)

    async def kill_plugin(self) -> int:
        return 4711

    async def restart_plugin(self) -> None:
        self.done.append("restart")

    async def start_again(self, claim: str) -> Inside:
        del claim
        return self.sees_again


class Notes:
    """A teller that writes everything down."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def section(self, title: str) -> None:
        self.lines.append(f"== {title}")

    def say(self, text: str) -> None:
        self.lines.append(text)

    def block(self, label: str, text: str) -> None:
        self.lines += [label, text]

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.lines += [" ".join(row) for row in (header, *rows)]


A, B, C = (f"gpu-0000-1{n}-00-0" for n in "135")


def true_stage(**lies: Any) -> PaperStage:
    truth: dict[str, Any] = {
        "found": node("dgx-h100"),
        "gives": {"forty": (A,), "pair": (B, C)},
        "sees": {"forty": inside(A), "pair": inside(B, C)},
        "sees_again": inside(B, C),
    }
    return PaperStage(**(truth | lies))


async def test_a_true_story_is_told_to_its_end() -> None:
    stage, notes = true_stage(), Notes()
    await story.tell(stage, notes, program="./dragoon")
    assert stage.done == ["restart", "pair", "forty"]
    assert [line for line in notes.lines if line.startswith("./dragoon ")][2:] == [
        "./dragoon devices   # the GPUs of this machine"
    ]
    assert "kill -9 4711" in notes.lines
    assert "because" in notes.lines


async def test_the_linked_groups_and_the_cards_alone_are_counted() -> None:
    notes = Notes()
    with pytest.raises(DemoError):  # there are no such devices to give
        await story.tell(true_stage(found=node("a6000-3way-one-bridge"), gives={}), notes)
    (line,) = [line for line in notes.lines if line.startswith("Linked by NVLink")]
    assert line.startswith("Linked by NVLink: 2 GPUs in domain ")
    assert line.endswith("; 1 alone")


LIES: dict[str, Callable[[], PaperStage]] = {
    "the node publishes GPUs": lambda: true_stage(found=()),
    "claim forty: nothing fits": lambda: true_stage(gives={"pair": (B, C)}),
    "the claim got one GPU": lambda: true_stage(
        gives={"forty": (A, B)}, sees={"forty": inside(A, B)}
    ),
    "it is large enough": lambda: true_stage(
        found=node("rtx3090-2way-bridge"), gives={"forty": (A,)}, sees={"forty": inside(A)}
    ),
    "and no other GPU": lambda: true_stage(sees={"forty": inside(A, B)}),
    "the claim got two GPUs": lambda: true_stage(
        gives={"forty": (A,), "pair": (B,)}, sees={"forty": inside(A), "pair": inside(B)}
    ),
    "they are in one NVLink domain": lambda: true_stage(found=node("a40-8way-bridge-pairs")),
    "the claim gets nothing": lambda: true_stage(
        gives={"forty": (A,), "pair": (B, C), "all": (A, B)}
    ),
    "the container sees the same as before": lambda: true_stage(sees_again=inside(B)),
}


@pytest.mark.parametrize("told", LIES)
async def test_a_stage_that_lies_ends_the_story(told: str) -> None:
    with pytest.raises(DemoError, match=told):
        await story.tell(LIES[told](), Notes())
