"""Pools: generations, completeness, validity; and the counters that partitions share."""

from tests.conformance.notation import (
    NO_SCHEDULE,
    B,
    Case,
    Raw,
    ask,
    at_least,
    claim,
    counted,
    dev,
    first,
    has,
    held,
    part,
    wish,
)

ONE = claim(ask())
PAIR = claim(ask("r0"), ask("r1"))
ALL = claim(ask("r", "a", "all"))
D1, D2 = dev("d1"), dev("d2")


def of_generation(generation: int, node: str, *names: str) -> list[Raw]:
    """Slices of a pool of two, one device each."""
    return [
        part(dev(name), generation=generation, count=2, on=node, name=f"g{generation}-{name}")
        for name in names
    ]


BROKEN = [part(D1, count=2, name="s1"), part(D1, count=2, name="s2")]
POOLS = [
    Case(
        "an older slice of a pool of which the newer lacks one",
        [ONE],
        [part(D1, count=2, name="old"), part(D2, count=2, generation=2, name="new")],
        "nothing",
    ),
    Case("the same device in two slices", [ONE], BROKEN, "invalid pools"),
    Case("a slice is missing", [ONE], [part(D1, count=2)], "nothing"),
    Case("a slice too many", [ONE], [part(D1, name="s1"), part(D2, name="s2")], "nothing"),
    Case(
        "an invalid pool beside one that will do", [ONE], [*BROKEN, part(D2, pool="q")], ["r=q/d2"]
    ),
    Case(
        "an invalid pool beside one that is held",
        [ONE],
        [*BROKEN, part(D2, pool="q")],
        "invalid pools",
        held=held("q/d2"),
    ),
    Case("all, and a pool is invalid", [ALL], [*BROKEN, part(D2, pool="q")], "all error"),
    Case(
        "slices of one pool for two nodes",
        [ONE],
        [part(D1, count=2, on="n2", name="s1"), part(D2, count=2, name="s2")],
        ["r=p/d2"],
    ),
    Case(
        "an old slice here, a new one elsewhere",
        [ONE],
        [*of_generation(1, "n1", "d1"), *of_generation(2, "n2", "d2")],
        "nothing",
    ),
    Case(
        "all old slices here, all new ones elsewhere",
        [ONE],
        [*of_generation(1, "n1", "d1", "d2"), *of_generation(2, "n2", "d1", "d2")],
        ["r=p/d1"],
    ),
    Case(
        "all old slices elsewhere, all new ones here",
        [ONE],
        [*of_generation(1, "n2", "d1", "d2"), *of_generation(2, "n1", "d1", "d2")],
        ["r=p/d1"],
    ),
    Case(
        "all old slices here, some new ones elsewhere",
        [ONE],
        [*of_generation(1, "n1", "d1", "d2"), *of_generation(2, "n2", "d1")],
        ["r=p/d1"],
    ),
    Case(
        "all old slices elsewhere, some new ones here",
        [ONE],
        [*of_generation(1, "n2", "d1", "d2"), *of_generation(2, "n1", "d1")],
        "nothing",
    ),
]

CHECKED = [
    Case(
        "a counter set twice in a pool",
        [ONE],
        [
            part(D1, count=4, name="s1"),
            part(count=4, name="s2", sets="s.c=1"),
            part(D2, count=4, name="s3"),
            part(count=4, name="s4", sets="s.c=1"),
        ],
        "invalid pools",
    ),
    Case(
        "a counter set that is not there",
        [ONE],
        counted("s.c=1", dev("d1", uses="t.c=1")),
        "invalid pools",
    ),
    Case(
        "a counter that is not in its set",
        [ONE],
        counted("s.c=1", dev("d1", uses="s.d=1")),
        "invalid pools",
    ),
    Case(
        "a counter set of another pool",
        [ONE],
        [part(dev("d1", uses="s.c=1")), part(pool="q", sets="s.c=1")],
        "invalid pools",
    ),
    Case(
        "a fault in a slice of another node",
        [ONE],
        [
            part(count=3, sets="s.c=8"),
            part(dev("d1", uses="s.c=6"), count=3, name="s2"),
            part(dev("d3", uses="t.c=6"), count=3, on="n2", name="s3"),
        ],
        "invalid pools",
    ),
]


def parts(*sizes: str, set_: str = "s") -> list[Raw]:
    """Partitions d1, d2 and so on that use so much memory, and have as much."""
    return [
        dev(f"d{n}", uses=f"{set_}.memory={size}", cap="as used") for n, size in enumerate(sizes, 1)
    ]


def cpus_and_memory(*amounts: tuple[str, str]) -> list[Raw]:
    return [
        dev(f"d{n}", uses=f"s.cpus={cpus} s.memory={memory}", cap="as used")
        for n, (cpus, memory) in enumerate(amounts, 1)
    ]


SIX_ELSE_FOUR = first("r1", wish(where=at_least("6Gi")), wish(where=at_least("4Gi")))
COUNTED = [
    Case("all, with a counter", [ALL], counted("s.memory=8Gi", *parts("4Gi")), ["r=p/d1"]),
    Case("one partition", [ONE], counted("s.memory=8Gi", *parts("4Gi")), ["r=p/d1"]),
    Case(
        "amounts beyond 63 bits",
        [ONE],
        counted(
            "s.c=10000000000000000000",
            dev("d1", uses="s.c=9000000000000000000"),
            dev("d2", uses="s.c=1"),
        ),
        ["r=p/d2"],
        held=held("p/d1"),
    ),
    Case(
        "two drivers with one pool name and one set name",
        [ONE, claim(ask("r", "b"))],
        [
            *counted("s.c=1", dev("d1", uses="s.c=1")),
            *counted("s.c=2", dev("d2", uses="s.c=2"), of=B),
        ],
        ["r=p/d1", "r=B:p/d2"],
    ),
    Case(
        "two drivers with one pool name, one is short",
        [ONE, claim(ask("r", "b"))],
        [
            *counted("s.c=1", dev("d1", uses="s.c=1")),
            *counted("t.d=1", dev("d2", uses="t.d=2"), of=B),
        ],
        "nothing",
    ),
    Case(
        "a tainted partition gives its counters back",
        [ONE],
        counted("s.c=1", dev("d1", uses="s.c=1", taints=[NO_SCHEDULE]), dev("d2", uses="s.c=1")),
        ["r=p/d2"],
    ),
    Case(
        "a partition that a constraint rules out gives its counters back",
        [claim(ask("r", "a", 2), same=["x"])],
        counted(
            "s.c=2",
            *(
                dev(f"d{n}", has={"x": x}, uses="s.c=1")
                for n, x in ((1, "red"), (2, "blue"), (3, "blue"))
            ),
        ),
        ["r=p/d2 r=p/d3"],
    ),
    Case(
        "four, then six or four of eight",
        [claim(ask("r0"), SIX_ELSE_FOUR)],
        counted("s.memory=8Gi", *parts("4Gi", "6Gi", "4Gi")),
        ["r0=p/d1 r1/s1=p/d3"],
    ),
    Case(
        "four and four of eight",
        [PAIR],
        counted("s.memory=8Gi", *parts("4Gi", "6Gi", "4Gi")),
        ["r0=p/d1 r1=p/d3"],
    ),
    Case(
        "one set is short of cpus",
        [claim(ask("r0"), SIX_ELSE_FOUR)],
        counted(
            "s.memory=18Gi t.cpus=8",
            *(
                dev(f"d{n}", uses=f"s.memory={n_}Gi t.cpus={n_}", cap="as used")
                for n, n_ in ((1, 4), (2, 6), (3, 4))
            ),
        ),
        ["r0=p/d1 r1/s1=p/d3"],
    ),
    Case(
        "two sets of two counters each",
        [PAIR],
        counted(
            "s.cpus=8 s.memory=18Gi t.cpus=12 t.memory=18Gi",
            dev("d1", uses="s.memory=4Gi s.cpus=6 t.cpus=4 t.memory=2Gi"),
            dev("d2", uses="s.memory=6Gi s.cpus=4 t.cpus=6 t.memory=6Gi"),
            dev("d3", uses="s.memory=4Gi s.cpus=4 t.cpus=4 t.memory=4Gi"),
        ),
        ["r0=p/d2 r1=p/d3"],
    ),
    Case(
        "the second pool has room",
        [PAIR],
        [
            *counted(
                "s.cpus=8 s.memory=18Gi", *cpus_and_memory(("6", "4Gi"), ("4", "6Gi"), ("4", "4Gi"))
            ),
            *counted(
                "s.cpus=8 s.memory=18Gi",
                *cpus_and_memory(("6", "4Gi"), ("1", "7Gi"), ("1", "7Gi")),
                pool="q",
            ),
        ],
        ["r0=q/d2 r1=q/d3"],
        held=held("p/d2", "p/d3", "q/d1"),
    ),
    Case(
        "a counter that nobody uses",
        [claim(ask("r", "a", 2))],
        counted("s.memory=8Gi s.unused=1Gi", *parts("5Gi", "4Gi", "4Gi")),
        ["r=p/d2 r=p/d3"],
    ),
    Case(
        "held partitions leave too little",
        [ONE],
        counted("s.memory=18Gi", *parts("4Gi", "16Gi")),
        "nothing",
        held=held("p/d2"),
    ),
    Case(
        "held partitions use more than there is",
        [ONE],
        counted("s.memory=18Gi", *parts("4Gi", "20Gi")),
        "nothing",
        held=held("p/d2"),
    ),
    Case(
        "a set that is overdrawn stops the other one's devices",
        [ONE],
        counted("s.memory=18Gi t.memory=8Gi", *parts("20Gi"), dev("e1", uses="t.memory=4Gi")),
        "nothing",
        held=held("p/d1"),
    ),
    Case(
        "a device that vanished uses nothing",
        [ONE],
        counted("s.memory=8Gi", *parts("8Gi")),
        ["r=p/d1"],
        held=held("p/gone"),
    ),
    Case(
        "admin access needs counters too",
        [claim(ask(admin=True))],
        counted("s.memory=4Gi", *parts("4Gi", "4Gi")),
        "nothing",
        held=held("p/d1"),
    ),
    Case(
        "partitions that a selector leaves for another request",
        [claim(ask("r0", "a", 2), ask("r1", where=has("special")))],
        counted(
            "s.cpu1=1 s.cpu2=1 s.cpu3=1 t.mem=30Gi",
            *(
                dev(f"d{n}", has={"special": n == 1}, uses=f"s.cpu{n}=1 t.mem=10Gi")
                for n in (1, 2, 3)
            ),
        ),
        ["r0=p/d2 r0=p/d3 r1=p/d1"],
    ),
]


def over_nodes(*slices: Raw) -> list[Raw]:
    return [part(count=3, sets="s.memory=8Gi"), *slices]


PLACED = [
    Case(
        "partitions with nodes of their own",
        [claim(first("r", wish(where=at_least("6Gi")), wish(where=at_least("4Gi"))))],
        counted(
            "s.memory=18Gi",
            dev("d1", uses="s.memory=4Gi", cap="as used", on="n1"),
            dev("d2", uses="s.memory=6Gi", cap="as used", on="n2"),
            on="each",
        ),
        ["r/s1=p/d1"],
    ),
    Case(
        "a partition with a region of its own",
        [ONE],
        counted("s.memory=18Gi", dev("d1", uses="s.memory=4Gi", on="region:r1"), on="each"),
        ["r=p/d1 @region:r1"],
    ),
    Case(
        "a region, a node and all, each by device",
        [claim(ask("r0", "a", 3), ask("r1", "b", 3))],
        [
            *counted(
                "s.memory=18Gi",
                *(
                    dev(f"d{n}", uses="s.memory=4Gi", on=on)
                    for n, on in ((1, "region:r1"), (2, "n1"), (3, "all"))
                ),
                on="each",
            ),
            *counted("t.memory=12Gi", *parts("4Gi", "4Gi", "4Gi", set_="t"), of=B, pool="q"),
        ],
        ["r0=p/d1 r0=p/d2 r0=p/d3 r1=B:q/d1 r1=B:q/d2 r1=B:q/d3"],
    ),
    Case(
        "a device of another node uses the counters of this one",
        [claim(first("r", wish(where=at_least("6Gi")), wish(where=at_least("2Gi"))))],
        over_nodes(
            part(*parts("6Gi", "2Gi"), count=3, name="s2"),
            part(dev("d3", uses="s.memory=6Gi"), count=3, on="n2", name="s3"),
        ),
        ["r/s1=p/d2"],
        held=held("p/d3"),
    ),
    Case(
        "the counters of another node's slice",
        [ONE],
        over_nodes(
            part(dev("d1", uses="s.memory=6Gi"), count=3, name="s2"),
            part(
                dev("d2", uses="s.memory=6Gi"),
                dev("d3", uses="s.memory=2Gi"),
                count=3,
                on="n2",
                name="s3",
            ),
        ),
        ["r=p/d3 @metadata.name:n2"],
        held=held("p/d1"),
        node="n2",
    ),
]

CASES = [*POOLS, *CHECKED, *COUNTED, *PLACED]
