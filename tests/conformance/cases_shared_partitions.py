"""Shares together with counters and with constraints."""

from tests.conformance.cases_shares import claims, of, shared, stepped
from tests.conformance.notation import (
    Case,
    ask,
    at_least,
    claim,
    counted,
    dev,
    first,
    has,
    held,
    part,
    steps,
    wish,
)

COUNTER = "s.c=1"
KINDS = {name: has("kind", name) for name in ("shared", "counted", "gate")}
WITH_COUNTERS = [
    Case(
        "partitions that are shared",
        [
            claim(
                ask("r0", "shared"),
                first(
                    "r1",
                    wish("shared", where=at_least("6Gi")),
                    wish("shared", where=at_least("4Gi")),
                ),
            )
        ],
        counted(
            "s.memory=8Gi",
            *(
                shared(f"d{n}", "as used", uses=f"s.memory={size}")
                for n, size in ((1, "4Gi"), (2, "6Gi"), (3, "4Gi"))
            ),
        ),
        ["r0=p/d1#{memory=4Gi} r1/s1=p/d3#{memory=4Gi}"],
    ),
    Case(
        "a share that is held uses counters",
        [claim(ask("r", "shared", where=has("kind", "b"), needs="m=1"))],
        counted(
            "s.m=1",
            *(
                shared(f"d{n}", "as used", uses="s.m=1", has={"kind": kind})
                for n, kind in ((1, "a"), (2, "b"))
            ),
        ),
        "nothing",
        held=held("p/d1", share=True, takes="m=1"),
    ),
    Case(
        "a second share uses no counters",
        claims(""),
        counted(COUNTER, shared(uses=COUNTER)),
        ["r=p/d1#"],
        held=held("p/d1", share=True),
    ),
    Case(
        "a share that is taken back gives its counters back",
        [claim(ask("r0", where=KINDS["shared"]), ask("r1", where=KINDS["counted"]))],
        counted(
            COUNTER,
            shared("d1", uses=COUNTER, has={"kind": "shared"}),
            dev("d2", has={"kind": "shared"}),
            dev("d3", uses=COUNTER, has={"kind": "counted"}),
        ),
        ["r0=p/d2 r1=p/d3"],
    ),
    Case(
        "a share that does not fit leaves no trace in a constraint",
        [
            claim(ask("r", needs="m=2", where=has("x", "cap"))),
            claim(
                first(
                    "r",
                    wish("a", "all", where=has("x", "cap"), needs="m=2"),
                    wish(where=has("x", "other")),
                ),
                same=["x"],
            ),
        ],
        [part(shared("d1", "m=2", has={"x": "cap"}), dev("d2", has={"x": "other"}))],
        ["r=p/d1#{m=2}", "r/s1=p/d2"],
    ),
    Case(
        "a second share that is taken back leaves the counters with the first",
        [
            claim(ask("r0", where=KINDS["shared"])),
            claim(
                ask("r1", where=f"{KINDS['shared']} || {has('kind', 'other')}"),
                ask("r2", where=KINDS["gate"]),
                ask("r3", where=KINDS["shared"]),
                same=["x r1 r2"],
            ),
        ],
        counted(
            COUNTER,
            shared("d1", uses=COUNTER, has={"kind": "shared", "x": "red"}),
            dev("d2", has={"kind": "other", "x": "blue"}),
            dev("d3", has={"kind": "gate", "x": "blue"}),
        ),
        ["r0=p/d1#", "r1=p/d2 r2=p/d3 r3=p/d1#"],
    ),
    Case(
        "two capacities, two counter sets, three requests",
        [
            claim(
                ask("r0", needs="m=1"),
                ask("r2", needs="m=2"),
                first("r1", *(wish(where=at_least(size, "m"), needs="m=1") for size in ("4", "2"))),
            )
        ],
        counted(
            "s.m=4 t.n=8",
            *(
                shared(f"d{n}", {"m": {"value": size}, "n": steps("4")}, uses=f"s.m={size} t.n=4")
                for n, size in ((1, "2"), (2, "4"), (3, "2"))
            ),
        ),
        ["r0=p/d1#{m=1 n=2} r2=p/d3#{m=2 n=2} r1/s1=p/d1#{m=1 n=2}"],
    ),
]

DISTINCT = [
    Case(
        "two shares that are to differ, one device",
        [claim(of("1", name="r0"), of("1", name="r1"), distinct=["x"])],
        [part(shared("d1", stepped("2"), has={"x": "a"}))],
        "nothing",
    ),
    Case(
        "two shares that are to differ, two devices",
        [claim(of("2", name="r0"), of("2", name="r1"), distinct=["x"])],
        [
            part(shared(f"d{n}", stepped("4"), has={"x": x}), count=2, name=f"s{n}")
            for n, x in ((1, "a"), (2, "b"))
        ],
        ["r0=p/d1#{m=2} r1=p/d2#{m=2}"],
    ),
]

CASES = [*WITH_COUNTERS, *DISTINCT]
