"""What is kept in memory: for tests that nothing is."""

import gc


def reachable(root: object) -> list[object]:
    """Everything that hangs on an object, classes and what they hold left out."""
    seen: dict[int, object] = {}
    left = [root]
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, type):
            seen[id(one)] = one
            left += gc.get_referents(one)
    return list(seen.values())
