"""A map of the cluster's GPUs: what there is, who holds it, which gangs wait and why.

`drawing` makes the map of a snapshot, `model` is what it consists of, `data` is the map as plain
data, `page` the same as one HTML page: `page.html`, `page.css` and `page.js` beside it.

Invariants: the page asks nobody for anything and runs no script but its own; names and messages
reach it as JSON data and text only, never as markup; the same snapshot gives the same page.
"""

from dragoon.diagnose.mapping.data import as_data
from dragoon.diagnose.mapping.drawing import draw
from dragoon.diagnose.mapping.page import page

__all__ = ["as_data", "draw", "page"]
