"""Alternatives, taints, binding conditions, and the order in which devices are tried."""

from tests.conformance.notation import (
    ANY_NO_SCHEDULE,
    NO_EFFECT,
    NO_EXECUTE,
    NO_SCHEDULE,
    THIS_NO_EXECUTE,
    A,
    B,
    Case,
    Raw,
    ask,
    at_least,
    claim,
    counted,
    dev,
    device_class,
    devs,
    first,
    has,
    held,
    part,
    wish,
)

ONE = claim(ask())
TWO = claim(ask("r", "a", 2))
D1, D2, D3, D4 = (dev(f"d{n}") for n in range(1, 5))


def sized(name: str, memory: str, version: str = "") -> Raw:
    return dev(name, cap=f"memory={memory}", has={"v": version} if version else None)


BIG_THEN_SMALL = first("r1", wish(where=at_least("2Gi")), wish(where=at_least("1Gi")))
NEW_ELSE_OLD = claim(
    first("r", wish("a", "all", where=has("of", "new")), wish("a", "all", where=has("of", "old")))
)
OLD, NEW = dev("d1", has={"of": "old"}), dev("d2", has={"of": "new"})

ALTERNATIVES = [
    Case(
        "the second alternative", [claim(first("r", wish("b"), wish()))], [part(D1)], ["r/s1=p/d1"]
    ),
    Case(
        "no alternative",
        [claim(first("r", wish("b", 2), wish("a", 2)))],
        [part(D1), part(D1, of=B)],
        "nothing",
    ),
    Case(
        "a selector for each alternative",
        [
            claim(
                ask("r0", where=at_least("1Gi")),
                first("r1", wish(where=at_least("4Gi")), wish("a", 2, where=at_least("2Gi"))),
            )
        ],
        [part(sized("d1", "2Gi"), sized("d2", "2Gi"), sized("d3", "1Gi"))],
        ["r0=p/d3 r1/s1=p/d1 r1/s1=p/d2"],
    ),
    Case(
        "a constraint that names the request rules out its first alternative",
        [claim(ask("r0", where=at_least("8Gi")), BIG_THEN_SMALL, same=["v r0 r1"])],
        [
            part(sized("d1", "8Gi", "v1.0.0")),
            part(sized("d2", "2Gi", "v2.0.0"), sized("d3", "1Gi", "v1.0.0"), pool="q"),
        ],
        ["r0=p/d1 r1/s1=q/d3"],
    ),
    Case(
        "a constraint that names one alternative leaves the other free",
        [claim(ask("r0", where=at_least("8Gi")), BIG_THEN_SMALL, same=["v r0 r1/s0"])],
        [part(sized("d1", "8Gi", "v1.0.0")), part(sized("d2", "2Gi", "v2.0.0"), pool="q")],
        ["r0=p/d1 r1/s1=q/d2"],
    ),
    Case(
        "all, one held, else one",
        [claim(first("r", wish("a", "all"), wish()))],
        [part(D1, D2)],
        ["r/s1=p/d2"],
        held=held("p/d1"),
    ),
    Case(
        "all, the last one held, else one",
        [claim(first("r", wish("a", "all"), wish()))],
        [part(D1, D2)],
        ["r/s1=p/d1"],
        held=held("p/d2"),
    ),
    Case(
        "one, then all else one",
        [claim(ask("r0"), first("r1", wish("a", "all"), wish()))],
        [part(D1, D2)],
        ["r0=p/d1 r1/s1=p/d2"],
    ),
    Case(
        "the large one is gone by then",
        [
            claim(
                ask("r1", where=at_least("8Gi")),
                first("r0", wish(where=at_least("8Gi")), wish(where=at_least("4Gi"))),
            )
        ],
        [part(sized("d1", "8Gi")), part(sized("d2", "4Gi"), pool="q")],
        ["r1=p/d1 r0/s1=q/d2"],
    ),
    Case(
        "the large one is left to who needs it",
        [
            claim(
                first("r0", wish(where=at_least("8Gi")), wish(where=at_least("4Gi"))),
                ask("r1", where=at_least("8Gi")),
            )
        ],
        [part(sized("d1", "8Gi")), part(sized("d2", "4Gi"), pool="q")],
        ["r0/s1=q/d2 r1=p/d1"],
    ),
    Case("all new ones, else all old ones", [NEW_ELSE_OLD], [part(OLD)], ["r/s1=p/d1"]),
    Case(
        "all old ones of two pools",
        [NEW_ELSE_OLD],
        [part(OLD), part(OLD, pool="q")],
        ["r/s1=p/d1 r/s1=q/d1"],
    ),
    Case(
        "what another node has does not count",
        [NEW_ELSE_OLD],
        [part(OLD), part(OLD, NEW, pool="q", on="n2")],
        ["r/s1=p/d1"],
    ),
    Case(
        "all of those that the class selects",
        [NEW_ELSE_OLD],
        [
            part(
                *(
                    dev(f"d{n}", has={"of": of, "in": into})
                    for n, of, into in ((1, "new", False), (2, "old", False), (3, "old", True))
                )
            )
        ],
        ["r/s1=p/d3"],
        classes=[device_class("a", f"device.driver == '{A}' && device.attributes['{A}']['in']")],
    ),
]

TAINTED = [
    Case(
        "two devices, each with a taint",
        [ONE],
        [part(dev("d1", taints=[NO_SCHEDULE]), dev("d2", taints=[NO_EXECUTE]))],
        "nothing",
    ),
    Case(
        "one device with two taints",
        [ONE],
        [part(dev("d1", taints=[NO_SCHEDULE, NO_EXECUTE]))],
        "nothing",
    ),
    Case(
        "the taint of one device is tolerated",
        [claim(ask(tolerates=[THIS_NO_EXECUTE]))],
        [part(dev("d1", taints=[NO_SCHEDULE]), dev("d2", taints=[NO_EXECUTE]))],
        ["r=p/d2~1"],
    ),
    Case(
        "the second alternative tolerates",
        [claim(first("r", wish(), wish(tolerates=[THIS_NO_EXECUTE])))],
        [part(dev("d1", taints=[NO_SCHEDULE]), dev("d2", taints=[NO_EXECUTE]))],
        ["r/s1=p/d2~1"],
    ),
    Case("a taint without an effect", [ONE], [part(dev("d1", taints=[NO_EFFECT]))], ["r=p/d1"]),
    Case(
        "both taints are tolerated",
        [claim(ask(tolerates=[ANY_NO_SCHEDULE, THIS_NO_EXECUTE]))],
        [part(dev("d1", taints=[NO_SCHEDULE, NO_EXECUTE]))],
        ["r=p/d1~2"],
    ),
    Case(
        "one of two taints is tolerated",
        [claim(ask(tolerates=[ANY_NO_SCHEDULE]))],
        [part(dev("d1", taints=[NO_SCHEDULE, NO_EXECUTE]))],
        "nothing",
    ),
    Case(
        "a taint rules out both alternatives",
        [claim(first("r", wish("b"), wish()))],
        [part(dev("d1", taints=[NO_SCHEDULE]))],
        "nothing",
    ),
    Case(
        "a taint holds for admin access",
        [claim(ask(admin=True))],
        [part(dev("d1", taints=[NO_SCHEDULE]))],
        "nothing",
        held=held("p/d1"),
    ),
    Case(
        "a taint on the only one of all",
        [claim(ask("r", "a", "all"))],
        [part(dev("d1", taints=[NO_SCHEDULE]))],
        "nothing",
    ),
]

USES = "s.memory=4Gi"
BINDING = [
    Case("a device that has to become ready", [ONE], [part(dev("d1", ready="x"))], ["r=p/d1?x"]),
    Case(
        "each device has conditions of its own",
        [claim(ask("r0", "a", 2), ask("r1"))],
        [part(*(dev(f"d{n}", ready=f"x{n}") for n in (1, 2, 3)))],
        ["r0=p/d1?x1 r0=p/d2?x2 r1=p/d3?x3"],
    ),
    Case(
        "one with, one without",
        [claim(ask("r0"), ask("r1"))],
        [part(D1, dev("d2", ready="x"))],
        ["r0=p/d1 r1=p/d2?x"],
    ),
    Case(
        "a partition that has to become ready",
        [ONE],
        counted("s.memory=8Gi", dev("d1", uses=USES, cap="as used", ready="x")),
        ["r=p/d1?x"],
    ),
    Case(
        "two partitions that have to become ready",
        [TWO],
        counted(
            "s.memory=8Gi", *(dev(f"d{n}", uses=USES, cap="as used", ready=f"x{n}") for n in (1, 2))
        ),
        ["r=p/d1?x1 r=p/d2?x2"],
    ),
    Case(
        "three partitions, two with conditions",
        [claim(ask("r", "a", 3))],
        counted(
            "s.memory=8Gi",
            dev("d1", uses="s.memory=2Gi", ready="x"),
            dev("d2", uses="s.memory=2Gi"),
            dev("d3", uses=USES, ready="y"),
        ),
        ["r=p/d1?x r=p/d2 r=p/d3?y"],
    ),
    Case(
        "slices by name, whatever their conditions",
        [TWO],
        [
            part(dev("d1", uses=USES, ready="x"), count=4, name="z4"),
            part(count=4, name="z3", sets="s.memory=8Gi"),
            part(dev("d2", uses="t.memory=4Gi"), count=4, name="z2"),
            part(count=4, name="z1", sets="t.memory=8Gi"),
        ],
        ["r=p/d2 r=p/d1?x"],
    ),
    Case(
        "conditions and a taint",
        [TWO],
        counted(
            "s.memory=8Gi",
            dev("d1", uses=USES, ready="x", taints=[NO_SCHEDULE]),
            dev("d2", uses=USES),
        ),
        "nothing",
    ),
    Case(
        "conditions and a taint that is tolerated",
        [claim(ask("r", "a", 2, tolerates=[ANY_NO_SCHEDULE]))],
        counted(
            "s.memory=8Gi",
            dev("d1", uses=USES, ready="x", taints=[NO_SCHEDULE]),
            dev("d2", uses=USES),
        ),
        ["r=p/d1~1?x r=p/d2~1"],
    ),
]

FIVE = claim(ask("r", "a", 5))
X, Y, Z = (dev(name, has={"type": kind}) for name, kind in (("d1", "X"), ("d2", "Y"), ("d3", "Y")))
ORDER = [
    Case(
        "pools by name",
        [TWO],
        [part(D1, pool=name, name=f"s-{name}") for name in ("r", "q", "p")],
        ["r=p/d1 r=q/d1"],
    ),
    Case(
        "pools with conditions come last",
        [TWO],
        [part(dev("d1", ready="x")), part(D3, pool="r"), part(D2, pool="q")],
        ["r=q/d2 r=r/d3"],
    ),
    Case(
        "slices by name",
        [TWO],
        [part(one, count=3, name=one["name"]) for one in (D3, D2, D1)],
        ["r=p/d1 r=p/d2"],
    ),
    Case(
        "slices with conditions keep their place",
        [TWO],
        [
            part(dev("d1", ready="x"), count=3, name="s1"),
            part(D3, count=3, name="s3"),
            part(D2, count=3, name="s2"),
        ],
        ["r=p/d1?x r=p/d2"],
    ),
    Case("five of four in one slice", [FIVE], [part(D1, D2, D3, D4)], "nothing"),
    Case(
        "five of four in two slices",
        [FIVE],
        [part(D1, D2, count=2, name="s1"), part(D3, D4, count=2, name="s2")],
        "nothing",
    ),
    Case(
        "five of four in two pools",
        [FIVE],
        [part(D1, count=2, name="s1"), part(D2, count=2, name="s2"), part(D3, D4, pool="q")],
        "nothing",
    ),
    Case(
        "five of four in four pools",
        [FIVE],
        [part(one, pool=f"p{one['name']}") for one in (D1, D2, D3, D4)],
        "nothing",
    ),
    Case(
        "two that leave the third its only one",
        [claim(ask("r1", "a", 2), ask("r2", where=has("type", "X")))],
        [part(X, Y, Z)],
        ["r1=p/d2 r1=p/d3 r2=p/d1"],
    ),
    Case(
        "two of several slices and pools that leave the third its only one",
        [claim(ask("r1", "a", 2), ask("r2", where=has("type", "X")))],
        [
            part(X, count=2, name="s1"),
            part(Y, count=2, name="s2"),
            part(dev("d3", has={"type": "Y"}, ready="x"), pool="q"),
        ],
        ["r1=p/d2 r1=q/d3?x r2=p/d1"],
    ),
    Case(
        "alternatives that leave each other enough",
        [
            claim(
                first("r1", wish("a", 3, where=has("type", "Y")), wish("a", 2)),
                first("r2", wish("a", 2), wish(where=has("type", "X"))),
            )
        ],
        [part(X, Y, Z)],
        ["r1/s1=p/d2 r1/s1=p/d3 r2/s1=p/d1"],
    ),
    Case(
        "32 devices in the order of the slice",
        [claim(ask("r", "a", 3))],
        [part(*devs(32))],
        ["r=p/d0 r=p/d1 r=p/d2"],
    ),
]

CASES = [*ALTERNATIVES, *TAINTED, *BINDING, *ORDER]
