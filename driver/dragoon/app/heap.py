"""Python's garbage collector, told what a long-lived process keeps."""

import gc
from typing import Final

_YOUNG: Final = 20_000
"""Objects made and kept between two young collections; JSON of one watch event makes hundreds."""


def settle_heap() -> None:
    """Leaves out of all later collections what there is now. Once in a process, after its start.

    Modules and first lists stay for good: at 1,000 nodes a full collection that walks them takes
    0.1 to 0.3 s, in the middle of a gang's plan. What is thrown away later and is in no cycle goes
    as before, by its reference count.
    """
    gc.collect()
    gc.freeze()
    _, middle, old = gc.get_threshold()
    gc.set_threshold(_YOUNG, middle, old)
