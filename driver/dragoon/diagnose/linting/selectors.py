"""Selectors as people write them: what does not compile, fails, or can never be true (case C38)."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from dragoon.api.forms import Form
from dragoon.cel import (
    COST_LIMIT,
    CompileError,
    CostLimitError,
    EvaluationError,
    Program,
    UnsupportedExpressionError,
    compile_selector,
)
from dragoon.diagnose import vocabulary
from dragoon.diagnose.linting import products, sizes, wording
from dragoon.diagnose.linting.claims import claim_spec
from dragoon.diagnose.linting.devices import Published, selected
from dragoon.diagnose.linting.finding import Context, Finding, Place
from dragoon.diagnose.linting.reading import Read, Reads, compared_with, reads
from dragoon.diagnose.manifests import Item, Raw, listed, mapping, text
from dragoon.diagnose.near import near
from dragoon.diagnose.vocabulary import FORMS, INDEX_WORDS, Vocabulary
from dragoon.errors import DragoonError
from dragoon.publish.attributes import PRODUCT

_SELECTORS: Final = "{path}.selectors[{index}].cel.expression"


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
    """One selector. class_name: of the request; empty for the selector of a DeviceClass."""

    place: Place
    text: str
    class_name: str = ""

    @property
    def forms(self) -> tuple[Form, ...]:
        """The forms of the devices that it sees."""
        form = vocabulary.CLASS_FORMS.get(self.class_name)
        return FORMS if form is None else (form,)

    @property
    def is_ours(self) -> bool:
        """Whether it sees devices of Dragoon only."""
        return self.class_name in vocabulary.CLASS_FORMS


@dataclass(slots=True)
class _Failures:
    """On which devices the selector fails, by the part that fails."""

    first: dict[str, str] = field(default_factory=dict)
    count: dict[str, int] = field(default_factory=dict)
    message: dict[str, str] = field(default_factory=dict)
    over_cost: str = ""

    def where(self, part: str) -> str:
        """Words for a message, empty if this part fails nowhere."""
        if part not in self.first:
            return ""
        others = self.count[part] - 1
        return f"; fails on device {self.first[part]}" + (f" and {others} more" if others else "")


def check(item: Item, context: Context) -> Iterator[Finding]:
    """Everything wrong with the selectors of a claim, a template or a class."""
    for selector in selectors_of(item):
        yield from check_selector(selector, context)


def selectors_of(item: Item) -> Iterator[Selector]:
    """All selectors of an object that has any."""
    if item.kind == "DeviceClass":
        yield from _selectors(item, mapping(item.raw.get("spec")), "spec", "")
    spec = claim_spec(item)
    if spec is not None:
        for wish in spec.wishes():
            yield from _selectors(item, wish.fields, wish.path, wish.class_name)


def _selectors(item: Item, fields: Raw, path: str, class_name: str) -> Iterator[Selector]:
    for index, one in enumerate(listed(fields.get("selectors"))):
        expression = text(mapping(mapping(one).get("cel")).get("expression"))
        if expression:
            where = _SELECTORS.format(path=path, index=index)
            yield Selector(Place(item, where), expression, class_name)


def check_selector(selector: Selector, context: Context) -> Iterator[Finding]:
    """Everything wrong with one selector."""
    try:
        program = compile_selector(selector.text)
    except CompileError as error:
        better = _other_map(selector, context) or wording.corrected(selector.text, error)
        yield selector.place.finding("DRG401", f"{selector.text}: {error.message}", better)
        return
    except UnsupportedExpressionError as error:
        yield selector.place.finding("DRG402", error.message, error.hint)
        return
    devices = tuple(_devices(selector, context))
    failures = _failures(program, devices)
    if program.estimated_cost > COST_LIMIT and not failures.over_cost:
        yield selector.place.finding("DRG414", selector.text)
    found = reads(selector.text)
    told: set[str] = set()
    for read in found.reads:
        part = found.part(read.node)
        for one in _judge(selector, found, read, context, failures.where(part)):
            if part not in told:
                yield one
            told.add(part)
    yield from _untold(selector, found, failures, told)
    if not selector.class_name:
        yield from _driver_first(selector, found, context)
    yield from products.check(selector.place, found, context)
    yield from sizes.check(selector.place, program, devices)


def _other_map(selector: Selector, context: Context) -> str:
    """The text with an attribute that is read as a capacity read as what it is."""
    with contextlib.suppress(DragoonError):
        found = reads(selector.text)
        for read in found.reads:
            known = Vocabulary.of(read.domain, context.driver)
            if known and read.kind == "capacity" and read.name in known.attributes:
                return wording.as_attribute(found, read)
    return ""


def _devices(selector: Selector, context: Context) -> Iterator[Published]:
    if not selector.class_name:
        return iter(context.devices)
    class_ = next(
        (raw for _, name, raw in context.objects("DeviceClass") if name == selector.class_name),
        None,
    )
    return selected(context.devices, class_)


def _failures(program: Program, devices: tuple[Published, ...]) -> _Failures:
    found = _Failures()
    for device in devices:
        try:
            program.evaluate(device.view)
        except CostLimitError:
            found.over_cost = found.over_cost or device.name
        except EvaluationError as error:
            trace = program.explain(device.view)
            part = trace.findings[0].text if trace.findings else program.text
            found.first.setdefault(part, device.name)
            found.message.setdefault(part, trace.failure or error.message)
            found.count[part] = found.count.get(part, 0) + 1
    return found


def _untold(
    selector: Selector, found: Reads, failures: _Failures, told: set[str]
) -> Iterator[Finding]:
    """Failures on devices of the cluster that no rule about names has told."""
    if failures.over_cost:
        yield selector.place.finding("DRG412", f"on device {failures.over_cost}")
    for part, message in failures.message.items():
        if part in told:
            continue
        read = next((one for one in found.reads if found.part(one.node) == part), None)
        better = "" if read is None else wording.guarded(found, read)
        yield selector.place.finding(
            "DRG407",
            f"{part}{failures.where(part)}: {message}",
            better,
        )


def _driver_first(selector: Selector, found: Reads, context: Context) -> Iterator[Finding]:
    risky = [read for read in found.reads if not read.guarded and read.domain == context.driver]
    if risky and not found.tests_driver:
        better = wording.first_that_compiles(
            (f"device.driver == '{context.driver}' && ({found.text})",)
        )
        yield selector.place.finding("DRG411", found.part(risky[0].node), better)


def _judge(
    selector: Selector, found: Reads, read: Read, context: Context, where: str
) -> Iterator[Finding]:
    known = Vocabulary.of(read.domain, context.driver)
    part = found.part(read.node)
    if known is None:
        if _is_wrong_domain(selector, read, context):
            code = "DRG413" if read.guarded else "DRG405"
            better = wording.in_domain(found, read, context.driver)
            message = f"{part}: the domain is the driver name, {context.driver}{where}"
            yield selector.place.finding(code, message, better)
        return
    has = set(known.forms(read.kind, read.name))
    seen = (set(selector.forms) & read.forms) if read.forms else set(selector.forms)
    if not has:
        yield _nowhere(selector, found, read, known, where)
    elif seen and not has & seen:
        code = "DRG413" if read.guarded else "DRG404"
        message = f"{part}: only devices of type {', '.join(sorted(has))} have it{where}"
        yield selector.place.finding(code, message, wording.guarded(found, read))
    elif not read.guarded and (read.name in known.often_absent or seen - has):
        message = f"{part}: not every device has it{where}"
        yield selector.place.finding("DRG406", message, wording.guarded(found, read))


def _is_wrong_domain(selector: Selector, read: Read, context: Context) -> bool:
    if selector.is_ours:
        return True
    drivers = {device.driver for device in context.devices}
    is_part = context.driver.endswith(f".{read.domain}")
    return read.domain not in drivers and (is_part or bool(near(read.domain, [context.driver])))


def _nowhere(
    selector: Selector, found: Reads, read: Read, known: Vocabulary, where: str
) -> Finding:
    """The finding for a name that no device has in this map of this domain."""
    place, part = selector.place, found.part(read.node)
    if read.kind == "attributes":
        capacity = vocabulary.meant(read.name) or read.name
        if capacity in known.capacity:
            better = wording.as_capacity(found, read, capacity) or _example(found, read, capacity)
            return place.finding("DRG403", f"{part}: {capacity} is a capacity{where}", better)
    elif read.name in known.attributes:
        better = wording.as_attribute(found, read)
        return place.finding("DRG403", f"{part}: {read.name} is an attribute{where}", better)
    code = "DRG413" if read.guarded else "DRG404"
    there = known.attributes if read.kind == "attributes" else known.capacity
    close = vocabulary.meant(read.name) or near(read.name, there)
    return place.finding(
        code,
        f"{part}: no device has {read.name}{where}; there are {', '.join(sorted(there)) or 'none'}",
        _instead(found, read, close),
    )


def _example(found: Reads, read: Read, capacity: str) -> str:
    map_ = wording.map_text(found, read).replace("device.attributes", "device.capacity", 1)
    return f"{map_}.{capacity}.compareTo(quantity('40Gi')) >= 0, for example"


def _instead(found: Reads, read: Read, close: str) -> str:
    """The near name, the expression with it, and the guarded form."""
    words: list[str] = []
    if read.name in INDEX_WORDS:
        words.append(
            "uuid or resource.kubernetes.io/pciBusID: an index moves when a card drops out"
        )
    elif close:
        compared = compared_with(read)
        short = "" if compared is None or compared[0] != "==" else str(compared[1])
        better = products.whole_word(found, read, short) if close == PRODUCT else ""
        words.append(f"near: {close}")
        words += filter(None, [better or wording.renamed(found, read, close)])
    if not read.guarded:
        words += filter(None, [_guard_words(found, read)])
    return "; ".join(words)


def _guard_words(found: Reads, read: Read) -> str:
    better = wording.guarded(found, read)
    return f"guarded, it is false instead of an error: {better}" if better else ""
