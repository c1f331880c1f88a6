"""docs/attributes.md, made from the table of attributes."""

from typing import Final

from dragoon.api import names
from dragoon.api.forms import Form
from dragoon.publish.attributes import ATTRIBUTES, CORES, MEMORY, TYPE_LOST, Attribute

_INTRODUCTION: Final = f"""\
# Attributes

What each device of Dragoon says about itself in its ResourceSlice. Made from
`publish/attributes.py`; a test compares them.

In a selector an attribute without a domain is read under the driver's name:
`device.attributes["{names.DRIVER_NAME}"].productName`. An attribute with a domain is read
under its own: `device.attributes["resource.kubernetes.io"].numaNode`.

**Reading an absent attribute is an error that stops the scheduling of the whole pod**, not a
device that does not match. Guard what may be absent, also because a device is of another form:
`device.attributes["{names.DRIVER_NAME}"].?nvlinkBandwidth.orValue(0) >= 400`.

| name | type | unit | forms | meaning | absent when |
|---|---|---|---|---|---|
"""

_CAPACITY: Final = f"""
## Capacity

| name | unit | forms | meaning | absent when |
|---|---|---|---|---|
| `{MEMORY}` | bytes, as a quantity | all | The memory of the GPU, or of the MIG instance. A share \
takes what its claim asks for: at least 512Mi, in steps of 1Mi; all of it where the claim does not \
say. | the driver does not tell it, as on chips that share the host's memory |
| `{CORES}` | per cent | shared | The ceiling of a share's compute, never a guarantee. No ceiling \
where the claim does not say. | the node enforces memory but not compute |

A request for `{MEMORY}`, or a guarded selector on it, does not match a device whose size is
unknown: `"{MEMORY}" in device.capacity["{names.DRIVER_NAME}"] && …`.

## Lost cards

A card that answers nothing stays published under its names with the taint
`{names.TAINT_LOST}` (NoSchedule) and the attributes it was last seen with; the type is `{TYPE_LOST}`
where it was never seen.
"""


def reference() -> str:
    """The page."""
    return _INTRODUCTION + "".join(map(_line, ATTRIBUTES)) + _CAPACITY


def _line(one: Attribute) -> str:
    forms = "all" if set(one.forms) == set(Form) else ", ".join(one.forms)
    return (
        f"| `{one.name}` | {one.kind} | {one.unit or '-'} | {forms} | {one.meaning} "
        f"| {one.absent} |\n"
    )
