"""Requests for a part of a device's capacity, as shares have them (cases C23, C26)."""

from collections.abc import Iterator
from typing import Any

from dragoon import quantity
from dragoon.diagnose import vocabulary
from dragoon.diagnose.linting import sizes
from dragoon.diagnose.linting.claims import Wish, claim_spec
from dragoon.diagnose.linting.devices import selected
from dragoon.diagnose.linting.finding import Context, Finding, Place
from dragoon.diagnose.manifests import Item, mapping
from dragoon.diagnose.near import did_you_mean
from dragoon.diagnose.vocabulary import Vocabulary
from dragoon.errors import InvalidInputError
from dragoon.quantity import Quantity


def check(item: Item, context: Context) -> Iterator[Finding]:
    """Amounts that no device of the class can give."""
    spec = claim_spec(item)
    for wish in () if spec is None else spec.wishes():
        for name, amount in mapping(mapping(wish.fields.get("capacity")).get("requests")).items():
            place = Place(item, f"{wish.path}.capacity.requests.{name}")
            yield from _one(place, wish, str(name), amount, context)


def _one(place: Place, wish: Wish, name: str, amount: Any, context: Context) -> Iterator[Finding]:
    form = vocabulary.CLASS_FORMS.get(wish.class_name)
    known = Vocabulary.of(context.driver, context.driver)
    wanted = _amount(amount)
    if form is not None and known is not None:
        there = [known_name for known_name, forms in known.capacity.items() if form in forms]
        if name not in there:
            short = vocabulary.meant(name) or name.rpartition("/")[2]
            message = f"{name}, which no device of class {wish.class_name} has"
            yield place.finding("DRG601", message, did_you_mean(short, there))
            return
        if name == "cores" and wanted is not None and wanted.sign == 0:
            yield place.finding("DRG602", amount, "no cores for no ceiling, or 1 to 100")
    if wanted is not None and name == "memory":
        class_ = next(
            (raw for _, known_, raw in context.objects("DeviceClass") if known_ == wish.class_name),
            None,
        )
        devices = tuple(selected(context.devices, class_))
        yield from sizes.check_amount(place, wanted, devices)


def _amount(amount: Any) -> Quantity | None:
    try:
        return quantity.parse(str(amount))
    except InvalidInputError:
        return None
