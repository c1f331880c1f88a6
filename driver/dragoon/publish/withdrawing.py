"""How long a device that is not offered any more stays published, tainted. Pure.

A device is withdrawn in two steps: first it gets a taint, so that nobody new gets it; it goes when
the taint has stood for a while, so that whoever was choosing it has come to light, and nobody
holds it. Gone earlier, it would take no counters, and its card would be given away again.
"""

from collections.abc import Collection, Mapping


def leaving(
    published: Collection[str],
    offered: Collection[str],
    held: Collection[str] | None,
    since: Mapping[str, float],
    *,
    now: float,
    settle: float,
) -> dict[str, float]:
    """The devices that stay although they are not offered, and since when each has its taint.

    published: names that stand in slices. held: names that claims hold, None where that could not
    be asked. since: the answer before. settle: for how many seconds a taint stands at least.
    """
    return {
        name: since.get(name, now)
        for name in published
        if name not in offered
        and (held is None or name in held or now - since.get(name, now) < settle)
    }
