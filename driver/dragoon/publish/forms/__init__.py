"""One small builder for each form of a card: names, attributes, capacity, counters. Pure.

May import what publish may. Invariants: a builder never decides whether its form is offered; no
two forms of a card share a device name, so that no device ever changes its form.
"""

from collections.abc import Mapping
from typing import Final

from dragoon.api.forms import Form
from dragoon.publish.card import Builder
from dragoon.publish.forms.mig import mig
from dragoon.publish.forms.shared import shared
from dragoon.publish.forms.whole import whole

BUILDERS: Final[Mapping[Form, Builder]] = {
    Form.WHOLE: whole,
    Form.SHARED: shared,
    Form.MIG: mig,
}
