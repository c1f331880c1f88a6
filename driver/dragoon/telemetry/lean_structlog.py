"""structlog without rich, which it takes for tracebacks on a console where it finds it.

Ours are lines: 3 MiB of each process, and a tenth of a second of its start, for nothing. Imported
before structlog; where one of the two is there already, nothing is changed.
"""

import sys

if "rich" not in sys.modules and "structlog" not in sys.modules:
    # None for a name makes its import fail (Python reference, 5.3.1); tables import rich later.
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
