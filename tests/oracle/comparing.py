"""What is compared with Kubernetes' own code: selectors, allocations and slices.

Each kind draws questions, plain JSON values, from a random source, and says in one sentence where
Dragoon and Kubernetes differ on one.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any, Protocol

from dragoon.allocator import Allocated, Kind, allocate_on, snapshot, verify
from dragoon.api.slice_validation import check_slice
from dragoon.errors import InvalidInputError, UnsupportedError
from tests.conformance.outcomes import ERRORS, error_class
from tests.oracle.edges import edgy_scene, random_device, random_selector
from tests.oracle.go_oracle import Oracle, Validators
from tests.oracle.slice_edges import random_slice
from tests.property.allocator_devices import DRIVER, Dice
from tests.property.allocator_scenes import Scene, patched
from tests.unit.cel.test_expressions import outcome

Raw = dict[str, Any]

_WHOLE = re.compile("[0-9]{1,18}(Ki|Mi|Gi)?|None")
_ATTEMPTS = 50_000
"""Devices tried before a search is given up here: both programs need seconds for many more."""
_TRIES = 20
"""How often Go is asked again where its answer may depend on the order of maps or caches."""


_BREAKS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What may end our code on objects that no API server stores; on others it is a mismatch."""


class UndecidedError(Exception):
    """A question on which there is nothing to compare, and why."""


class Comparison(Protocol):
    """One kind of question."""

    name: str

    def draw(self, dice: Dice) -> Raw:
        """A random question."""

    def difference(self, question: Raw) -> str:
        """Where the two answers differ, empty where they agree. Raises UndecidedError."""


class Selectors:
    """One CEL selector on one device."""

    name = "selector"

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def draw(self, dice: Dice) -> Raw:
        return {"expression": random_selector(dice), "device": random_device(dice)}

    def difference(self, question: Raw) -> str:
        ours = outcome(question["expression"], DRIVER, question["device"])
        if ours == "unsupported":
            raise UndecidedError("an expression that Dragoon says it does not support")
        answer = self._oracle.ask("cel", driver=DRIVER, **question)
        if "panic" in answer or "interface conversion" in answer.get("error", ""):
            raise UndecidedError("an expression on which cel-go panics")
        theirs = "compile" if "compile" in answer else str(answer.get("matches")).lower()
        theirs = "error" if "error" in answer else theirs
        return "" if ours == theirs else f"ours: {ours}, theirs: {theirs} ({answer})"


class Allocations:
    """The claims of one pod on one node."""

    name = "allocation"

    def __init__(self, oracle: Oracle, validators: Validators) -> None:
        self._oracle = oracle
        self._validators = validators

    def draw(self, dice: Dice) -> Raw:
        return dict(vars(edgy_scene(dice)))

    def difference(self, question: Raw) -> str:
        scene = Scene(**question)
        scene.claims = [self._validators.stored("ResourceClaim", one) for one in scene.claims]
        try:
            ours = _our_answer(scene)
        except UnsupportedError as error:
            raise UndecidedError(
                "a scene with something that Dragoon says it does not support"
            ) from error
        except InvalidInputError as error:
            return "" if any(self._refused(scene)) else f"only Dragoon refuses it: {error}"
        except _BREAKS as error:
            if any(self._refused(scene)):
                raise UndecidedError("objects that no API server stores") from error
            return f"Dragoon breaks: {error!r}"
        theirs = self._their_answer(scene)
        said = _compared(ours, theirs)
        refused = "" if said else _verified(scene, theirs)
        if not said and not refused:
            return ""
        if any(self._refused(scene)):
            raise UndecidedError("objects that no API server stores")
        if said and self._may_say(ours, scene):
            raise UndecidedError("a scene on which Go's answer depends on an order at random")
        return said or refused

    def _may_say(self, ours: Raw, scene: Scene) -> bool:
        """Whether Go gives our answer at other times, with the slices in another order."""
        for attempt in range(_TRIES):
            at = attempt % (len(scene.slices) or 1)
            turned = replace(scene, slices=scene.slices[at:] + scene.slices[:at])
            if not _compared(ours, self._their_answer(turned)):
                return True
        return False

    def _their_answer(self, scene: Scene) -> Raw:
        try:
            answer = self._oracle.ask(
                "allocate",
                claims=scene.claims,
                classes=scene.classes,
                slices=patched(scene),
                allocated=scene.held,
                node=scene.node,
            )
        except RuntimeError as error:
            return {"verdict": "unreadable", "why": str(error)}
        if "panic" in answer or answer.get("stopped"):
            raise UndecidedError("a search in which kube-scheduler panics or gives up")
        if "error" in answer:
            return {
                "verdict": "no fit" if answer.get("onNode") else "error",
                "why": answer["error"],
            }
        if answer["allocations"] is None:
            return {"verdict": "no fit"}
        return {"verdict": "allocated", "allocations": _numbered(answer["allocations"])}

    def _refused(self, scene: Scene) -> Iterator[str]:
        for kind, objects in (
            ("ResourceClaim", scene.claims),
            ("ResourceSlice", scene.slices),
            ("DeviceClass", scene.classes),
        ):
            for raw in objects:
                yield from self._validators.refusals(kind, raw)


def _our_answer(scene: Scene) -> Raw:
    ids = count()
    arguments = scene.arguments()
    node = arguments.pop("node")
    answer = allocate_on(
        snapshot(**arguments),
        scene.claims,
        node,
        attempts=_ATTEMPTS,
        share_ids=lambda: f"share-{next(ids)}",
    )
    if isinstance(answer, Allocated):
        return {"verdict": "allocated", "allocations": _numbered(list(answer.allocations))}
    if answer.kind is Kind.STOPPED:
        raise UndecidedError("a search that Dragoon gives up")
    verdict = "error" if answer.kind is Kind.FAILED else "no fit"
    return {"verdict": verdict, "why": answer.message}


def _numbered(allocations: list[Raw]) -> list[Raw]:
    """With share IDs that count up instead of being random; one given twice stays recognizable."""
    known: dict[str, str] = {}

    def result(raw: Raw) -> Raw:
        if "shareID" not in raw:
            return raw
        return {**raw, "shareID": known.setdefault(raw["shareID"], f"share-{len(known)}")}

    return [
        {
            **one,
            "devices": {**one["devices"], "results": list(map(result, one["devices"]["results"]))},
        }
        if one.get("devices", {}).get("results")
        else one
        for one in allocations
    ]


def _compared(ours: Raw, theirs: Raw) -> str:
    if ours["verdict"] != theirs["verdict"]:
        return f"ours: {_told(ours)}, theirs: {_told(theirs)}"
    if ours["verdict"] == "error":
        classes = (error_class(ours["why"], ERRORS), error_class(theirs["why"], THEIR_ERRORS))
        return "" if classes[0] == classes[1] else f"ours: {ours['why']}, theirs: {theirs['why']}"
    if ours.get("allocations") != theirs.get("allocations"):
        return f"ours: {ours['allocations']}, theirs: {theirs['allocations']}"
    return ""


def _told(answer: Raw) -> str:
    return f"{answer['verdict']} ({answer.get('why') or answer.get('allocations') or ''})"


def _verified(scene: Scene, theirs: Raw) -> str:
    """What our verifier finds wrong with what kube-scheduler gives."""
    if theirs["verdict"] != "allocated":
        return ""
    try:
        problems = verify(scene.claims, theirs["allocations"], **scene.arguments())
    except _BREAKS as error:
        return f"the verifier breaks: {error!r}"
    return f"the verifier refuses what kube-scheduler gives: {problems}" if problems else ""


THEIR_ERRORS = (
    ("class", "could not retrieve device class|missing device class name"),
    ("count", "claim limit|is too large"),
    ("constraint", "claim constraint would not be satisfied"),
    ("all", "asks for all devices"),
    ("selector", "CEL compile error|CEL runtime error"),
    ("node", "node selection|NodeSelector"),
    ("capacity", "capacity"),
)
"""Classes of errors, by what the first sentence that matches says."""


class Slices:
    """Whether an API server would store a ResourceSlice."""

    name = "slice"

    def __init__(self, validators: Validators) -> None:
        self._validators = validators

    def draw(self, dice: Dice) -> Raw:
        return random_slice(dice)

    def difference(self, question: Raw) -> str:
        theirs = self._validators.refusals("ResourceSlice", question)
        ours = [str(one) for one in check_slice(question)]
        if bool(ours) == bool(theirs):
            return ""
        if not theirs and all("requestPolicy" in one for one in ours) and _has_fractions(question):
            raise UndecidedError("a policy of fractions, which Dragoon refuses on purpose")
        return f"ours: {ours or 'stored'}, theirs: {theirs or 'stored'}"


def _has_fractions(slice_: Raw) -> bool:
    """Whether a device that is shared out has a capacity that is no whole number."""
    return any(
        not _WHOLE.fullmatch(str(amount))
        for device in slice_["spec"].get("devices") or ()
        for entry in (device.get("capacity") or {}).values()
        for amount in _amounts(entry)
    )


def _amounts(entry: Raw) -> Iterator[Any]:
    policy = entry.get("requestPolicy") or {}
    yield from (entry.get("value"), policy.get("default"), *(policy.get("validValues") or ()))
    yield from (policy.get("validRange") or {}).values()


def comparisons(oracle: Oracle, validators: Validators) -> list[Comparison]:
    """All kinds, those that are worth more time more often."""
    allocations: Comparison = Allocations(oracle, validators)
    return [allocations, allocations, allocations, Selectors(oracle), Slices(validators)]
