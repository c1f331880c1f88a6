"""What somebody may have meant by a name that is not there."""

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: str, known: Iterable[str]) -> str:
    """The nearest of the known names, empty if none is near."""
    by_lower = {one.lower(): one for one in sorted(known, reverse=True)}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    found = get_close_matches(name.lower(), sorted(by_lower), n=1, cutoff=0.6)
    if found:
        return by_lower[found[0]]
    # Very short names differ by much in proportion and by little for a reader: a2 and a.
    parts = [one for one in sorted(by_lower) if one and one in name.lower()]
    return by_lower[max(parts, key=len)] if parts else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or the names that there are."""
    there = sorted(set(known))
    close = near(name, there)
    if close:
        return f"did you mean {close}?"
    return f"there are {', '.join(there)}" if there else "there is none"
