"""Constraints, configuration, and how many devices a claim can have."""

from tests.conformance.notation import (
    CONFIGURED,
    B,
    Case,
    Raw,
    ask,
    claim,
    counted,
    dev,
    devs,
    first,
    has,
    part,
    wish,
)

TWO = ask("r", "a", 2)
THREE = ask("r", "a", 3)
PAIR = (ask("r0"), ask("r1"))


def valued(*values: object, name: str = "x", shared: bool = False) -> Raw:
    """A slice of devices d1, d2 and so on, each with a value of one attribute."""
    return part(
        *(dev(f"d{n}", has={name: value}, shared=shared) for n, value in enumerate(values, 1))
    )


EVERYTHING = {"s": "a", "b": True, "i": 1, "v": "v1.0.0"}
MATCHING = [
    Case(
        "four attributes of all types match",
        [claim(*PAIR, same=["i", "v", "s", "b"])],
        [part(dev("d1", has=EVERYTHING), dev("d2", has=EVERYTHING))],
        ["r0=p/d1 r1=p/d2"],
    ),
    Case(
        "an attribute that no device has", [claim(ask(), same=["x"])], [part(dev("d1"))], "nothing"
    ),
    Case("numbers that differ", [claim(TWO, same=["x"])], [valued(1, 2)], "nothing"),
    Case("texts that differ", [claim(TWO, same=["x"])], [valued("a", "b")], "nothing"),
    Case("bools that differ", [claim(TWO, same=["x"])], [valued(True, False)], "nothing"),
    Case("versions that differ", [claim(TWO, same=["x"])], [valued("v1.0.0", "v2.0.0")], "nothing"),
    Case("types that differ", [claim(TWO, same=["x"])], [valued("1", 1)], "nothing"),
    Case(
        "all devices, numbers that differ",
        [claim(ask("r", "a", "all"), same=["x"])],
        [valued(1, 2)],
        "constraint error",
    ),
    Case(
        "all devices, numbers that differ, and a counter taken by then",
        [claim(ask("r", "a", "all"), same=["x"])],
        counted("s.c=1", dev("d1", has={"x": 1}), dev("d2", has={"x": 2}, uses="s.c=1")),
        "constraint error",
    ),
    Case(
        "a constraint of one request",
        [claim(*PAIR, same=["x r0"])],
        [valued("v1.0.0", "v2.0.0")],
        ["r0=p/d1 r1=p/d2"],
    ),
    Case(
        "a constraint of one request and one of both",
        [claim(*PAIR, same=["v r0", "s"])],
        [part(*(dev(f"d{n}", has={"v": f"v{n}.0.0", "s": s}) for n, s in enumerate("abb", 1)))],
        ["r0=p/d2 r1=p/d3"],
    ),
    Case(
        "lists, which need a gate",
        [claim(TWO, same=["x"])],
        [valued(["a", "b"], ["b", "c"])],
        "nothing",
    ),
    Case("an attribute without a value", [claim(ask(), distinct=["x r"])], [valued({})], "refused"),
]

DISTINCT = [
    Case(
        "three constraints over two, three and four requests",
        [
            claim(
                *(ask(f"r{n}") for n in range(4)),
                distinct=["b r0 r1", "v r0 r1 r2", "i r0 r1 r2 r3"],
            )
        ],
        [
            part(
                *(
                    dev(f"d{n}", has={"v": v, "i": n, "b": b}, shared=True)
                    for n, v, b in (
                        (1, "v1.0.0", True),
                        (2, "v1.0.1", False),
                        (3, "v1.0.2", True),
                        (4, "v1.0.0", True),
                    )
                )
            )
        ],
        ["r0=p/d1# r1=p/d2# r2=p/d3# r3=p/d4#"],
    ),
    Case(
        "three devices, two values",
        [claim(THREE, distinct=["x"])],
        [valued("a", "b", "a")],
        "nothing",
    ),
    Case(
        "three devices, three values",
        [claim(THREE, distinct=["x"])],
        [valued("a", "b", "c")],
        ["r=p/d1 r=p/d2 r=p/d3"],
    ),
    Case(
        "two and one of two values",
        [claim(ask("r0", "a", 2), ask("r1"), distinct=["x r0 r1"])],
        [valued("a", "b", "a")],
        "nothing",
    ),
    Case(
        "a shared device without the attribute",
        [claim(ask(), distinct=["x r"])],
        [part(dev("d1", shared=True))],
        "nothing",
    ),
    Case(
        "devices without the attribute", [claim(THREE, distinct=["x"])], [part(*devs(3))], "nothing"
    ),
    Case(
        "four devices of two values",
        [claim(THREE, distinct=["x"])],
        [valued(1, 2, 2, 2)],
        "nothing",
    ),
    Case(
        "a value that is there twice is passed over",
        [claim(THREE, distinct=["x"])],
        [valued(1, 2, 1, 3)],
        ["r=p/d1 r=p/d2 r=p/d4"],
    ),
    Case(
        "of three requests only two are to differ",
        [
            claim(
                *(first(f"r{n}", wish(where=has("x")), wish()) for n in range(3)),
                distinct=["x r0 r1"],
            )
        ],
        [valued(True, False, shared=True)],
        ["r0/s0=p/d1# r1/s1=p/d2# r2/s0=p/d1#"],
    ),
    Case(
        "lists that are to differ, which need a gate",
        [claim(TWO, distinct=["x"])],
        [valued(["a", "b"], ["c"])],
        "nothing",
    ),
]

PLAIN = part(dev("d1"))
CONFIG = [
    Case(
        "the configuration of a class",
        [claim(ask())],
        [PLAIN],
        ["r=p/d1 class:of-a"],
        classes=CONFIGURED,
    ),
    Case(
        "the configurations of two classes",
        [claim(*PAIR, ask("r2", "b"))],
        [part(*devs(2)), part(dev("d1"), of=B)],
        ["r0=p/d0 r1=p/d1 r2=B:p/d1 class:of-a[r0,r1] class:of-b[r2]"],
        classes=CONFIGURED,
    ),
    Case(
        "the configuration of two requests",
        [claim(*PAIR, ask("r2"), config=["x r0 r1"])],
        [part(*devs(3))],
        ["r0=p/d0 r1=p/d1 r2=p/d2 claim:x[r0,r1]"],
    ),
    Case("the configuration of a claim", [claim(ask(), config=["x"])], [PLAIN], ["r=p/d1 claim:x"]),
    Case(
        "class before claim",
        [claim(ask(), config=["x"])],
        [PLAIN],
        ["r=p/d1 class:of-a claim:x"],
        classes=CONFIGURED,
    ),
    Case(
        "the configuration of the alternative that is taken",
        [claim(first("r", wish(), wish("b", 2)), config=["one r/s0", "two r/s1"])],
        [part(*devs(2), of=B)],
        ["r/s1=B:p/d0 r/s1=B:p/d1 claim:two"],
    ),
    Case(
        "the class of the alternative that is taken",
        [claim(first("r", wish("a", 2), wish("b", 2)))],
        [part(*devs(2), of=B), part(dev("d3"), pool="q")],
        ["r/s1=B:p/d0 r/s1=B:p/d1 class:of-b"],
        classes=CONFIGURED,
    ),
    Case(
        "a configuration of both alternatives of one request",
        [claim(first("r0", wish(), wish("b")), ask("r1"), config=["x r0/s0 r0/s1"])],
        [part(*devs(2))],
        ["r0/s0=p/d0 r1=p/d1 claim:x[r0/s0,r0/s1]"],
    ),
    Case(
        "a configuration that means every request names none",
        [claim(first("r0", wish(), wish("b")), ask("r1"), config=["x r0/s0 r1"])],
        [part(*devs(2))],
        ["r0/s0=p/d0 r1=p/d1 claim:x"],
    ),
]

HUGE = 2**62
LIMITS = [
    Case("500 devices", [claim(ask("r", "a", 500))], [], "count error"),
    Case("32 devices where there are none", [claim(ask("r", "a", 32))], [], "nothing"),
    Case(
        "32 devices",
        [claim(ask("r", "a", 32))],
        [part(*devs(32))],
        [" ".join(f"r=p/d{n}" for n in range(32))],
    ),
    Case(
        "32 and one more", [claim(ask("r0", "a", 32), ask("r1"))], [part(*devs(33))], "count error"
    ),
    Case(
        "two counts whose sum passes 63 bits",
        [claim(*(ask(f"r{n}", "a", HUGE) for n in range(2)))],
        [],
        "count error",
    ),
    Case(
        "four counts whose sum wraps to zero",
        [claim(*(ask(f"r{n}", "a", HUGE) for n in range(4)))],
        [],
        "count error",
    ),
    Case("20 and 20", [claim(ask("r0", "a", 20), ask("r1", "a", 20))], [], "count error"),
    Case(
        "16 and 16",
        [claim(ask("r0", "a", 16), ask("r1", "a", 16))],
        [part(*devs(32))],
        [" ".join(f"r{n // 16}=p/d{n}" for n in range(32))],
    ),
    Case(
        "500 of a selector that is broken",
        [claim(ask("r", "a", 500, where="nothing"))],
        [],
        "count error",
    ),
    Case("500, else one", [claim(first("r", wish("b", 500), wish()))], [PLAIN], ["r/s1=p/d1"]),
    Case(
        "20 and at least 20",
        [claim(ask("r0", "a", 20), first("r1", wish("a", 20), wish("a", 24)))],
        [],
        "count error",
    ),
    Case(
        "one, then 2^63-1, else one",
        [claim(ask("r0"), first("r1", wish("a", 2**63 - 1), wish()))],
        [part(*devs(2))],
        ["r0=p/d0 r1/s1=p/d1"],
    ),
    Case(
        "32 else 16, twice",
        [claim(*(first(f"r{n}", wish("a", 32), wish("a", 16)) for n in range(2)))],
        [part(*devs(64))],
        [" ".join(f"r{n // 16}/s1=p/d{n}" for n in range(32))],
    ),
    Case(
        "all 31 would leave no room for two",
        [claim(first("r0", wish("a", "all"), wish("a", 2)), ask("r1", "b", 2))],
        [part(*devs(31)), part(*devs(2), of=B)],
        ["r0/s1=p/d0 r0/s1=p/d1 r1=B:p/d0 r1=B:p/d1"],
    ),
]

CASES = [*MATCHING, *DISTINCT, *CONFIG, *LIMITS]
