"""Plain devices: which are found, all of them, admin access, nodes."""

from tests.conformance.notation import (
    CLASSES,
    A,
    B,
    Case,
    ask,
    at_least,
    claim,
    dev,
    first,
    held,
    part,
    wish,
)

ONE = claim(ask())
ALL = claim(ask("r", "a", "all"))
ADMIN = claim(ask(admin=True))
PLAIN = part(dev("d1"))
OF_B = part(dev("d1"), of=B)
TWO = part(dev("d1"), dev("d2"))
SMALL, LARGE = dev("small", cap="memory=1Gi"), dev("large", cap="memory=2Gi")
SMALL_THEN_LARGE = (ask("r0", where=at_least("1Gi")), ask("r1", where=at_least("2Gi")))
ALL_ELSE_B = claim(first("r", wish("a", "all"), wish("b")))

FINDING = [
    Case("no claims, nothing to give", [], [PLAIN], []),
    Case("one device for one request", [ONE], [PLAIN], ["r=p/d1"]),
    Case(
        "the device of the right driver on the right node",
        [ONE],
        [part(dev("d1"), of=B), part(dev("d1"), pool="q", on="n2")],
        ["r=q/d1 @metadata.name:n2"],
        node="n2",
    ),
    Case(
        "each request gets what is large enough",
        [claim(*SMALL_THEN_LARGE)],
        [part(SMALL, LARGE)],
        ["r0=p/small r1=p/large"],
    ),
    Case(
        "a choice is taken back for the next request",
        [claim(*SMALL_THEN_LARGE)],
        [part(LARGE, SMALL)],
        ["r0=p/small r1=p/large"],
    ),
    Case(
        "a choice is taken back for the next claim",
        [claim(one) for one in SMALL_THEN_LARGE],
        [part(LARGE, SMALL)],
        ["r0=p/small", "r1=p/large"],
    ),
    Case(
        "two devices from two pools",
        [claim(ask("r", "a", 2))],
        [PLAIN, part(dev("d1"), pool="q")],
        ["r=p/d1 r=q/d1"],
    ),
    Case("no slices", [ONE], [], "nothing"),
    Case("one device for two claims", [ONE, ONE], [PLAIN], "nothing"),
    Case("a device that is held", [ONE], [PLAIN], "nothing", held=held("p/d1", "p/d2")),
    Case(
        "two claims for two drivers with one pool name",
        [ONE, claim(ask("r", "b"))],
        [TWO, OF_B],
        ["r=p/d1", "r=B:p/d1"],
    ),
    Case("no class at all", [ONE], [PLAIN], "class error", classes=[]),
    Case("a class that is not there", [claim(ask("r", "gone"))], [PLAIN], "class error"),
    Case("no class name", [claim({"name": "r", "exactly": {}})], [PLAIN], "refused"),
    Case("an empty class name", [claim(ask("r", ""))], [PLAIN], "class error"),
]

ALL_OF_THEM = [
    Case("all is one", [ALL], [PLAIN], ["r=p/d1"]),
    Case("all of two pools", [ALL], [PLAIN, part(dev("d1"), pool="q")], ["r=p/d1 r=q/d1"]),
    Case("all of a pool that lacks a slice", [ALL], [part(dev("d1"), count=2)], "all error"),
    Case(
        "all of a driver and one of another",
        [ALL, claim(ask("r", "b"))],
        [PLAIN, OF_B],
        ["r=p/d1", "r=B:p/d1"],
    ),
    Case(
        "one of a driver and all of another",
        [claim(ask("r", "b")), ALL],
        [PLAIN, OF_B],
        ["r=B:p/d1", "r=p/d1"],
    ),
    Case(
        "all two and one of another",
        [ALL, claim(ask("r", "b"))],
        [TWO, OF_B],
        ["r=p/d1 r=p/d2", "r=B:p/d1"],
    ),
    Case(
        "one of another and all two",
        [claim(ask("r", "b")), ALL],
        [TWO, OF_B],
        ["r=B:p/d1", "r=p/d1 r=p/d2"],
    ),
    Case("one, then all of what it took from", [ONE, ALL], [PLAIN], "nothing"),
    Case("all, then one more", [ALL, ONE], [PLAIN], "nothing"),
    Case("all of an empty slice", [ALL], [part()], "nothing"),
    Case("all without slices", [ALL], [], "nothing"),
    Case("all where one is held", [ALL], [TWO], "nothing", held=held("p/d1")),
    Case("an empty slice, else another driver", [ALL_ELSE_B], [part(), OF_B], ["r/s1=B:p/d1"]),
    Case("no slice, else another driver", [ALL_ELSE_B], [OF_B], ["r/s1=B:p/d1"]),
    Case(
        "one is held, else another driver",
        [ALL_ELSE_B],
        [TWO, OF_B],
        ["r/s1=B:p/d1"],
        held=held("p/d1"),
    ),
    Case(
        "all of this node in a pool of several",
        [ALL],
        [part(dev("d1"), count=2), part(dev("d2"), count=2, on="n2", name="two")],
        ["r=p/d1"],
    ),
]

ADMIN_ACCESS = [
    Case("admin access to what is held", [ADMIN], [PLAIN], ["r=p/d1!"], held=held("p/d1", "p/d2")),
    Case(
        "admin access to all, held or not",
        [claim(ask("r", "a", "all", admin=True))],
        [TWO],
        ["r=p/d1! r=p/d2!"],
        held=held("p/d1"),
    ),
    Case(
        "admin access takes a device once in a claim",
        [claim(ask("r0", admin=True), ask("r1", "a", "all", admin=True))],
        [TWO],
        "nothing",
    ),
    Case(
        "admin access to two, one held",
        [claim(ask("r", "a", 2, admin=True))],
        [TWO],
        ["r=p/d1! r=p/d2!"],
        held=held("p/d1"),
    ),
    Case("admin access of two claims to one device", [ADMIN, ADMIN], [TWO], ["r=p/d1!", "r=p/d1!"]),
    Case("admin access to what the pod just took", [ONE, ADMIN], [TWO], ["r=p/d1", "r=p/d1!"]),
    Case("what admin access took first is not free for the pod", [ADMIN, ONE], [PLAIN], "nothing"),
]

NETWORK = part(dev("d1"), on="region:r1")
NODES = [
    Case("a device of a region", [ONE], [NETWORK], ["r=p/d1 @region:r1"]),
    Case("a device of another region", [ONE], [NETWORK], "nothing", node="n2"),
    Case(
        "selectors of several devices are joined",
        [claim(ask("r", "a", 4))],
        [
            NETWORK,
            part(dev("d1"), pool="q", on="all"),
            part(dev("d1"), pool="s", on="planet:earth"),
            part(dev("d1"), pool="t", on="metadata.name:n1"),
        ],
        ["r=p/d1 r=q/d1 r=s/d1 r=t/d1 @metadata.name:n1&planet:earth&region:r1"],
    ),
    Case("a device for all nodes", [ONE], [part(dev("d1"), on="all")], ["r=p/d1 @anywhere"]),
    Case(
        "a local device pins the claim",
        [claim(ask("r", "a", 2))],
        [NETWORK, part(dev("d1"), pool="q")],
        ["r=p/d1 r=q/d1"],
    ),
    Case(
        "a device that binds pins the claim",
        [ONE],
        [part(dev("d1", bound=True), on="planet:earth")],
        ["r=p/d1"],
    ),
]

SELECTOR_ERRORS = [
    Case(
        "a selector that is no CEL selector",
        [claim({"name": "r", "exactly": {"deviceClassName": "a", "selectors": [{}]}})],
        [PLAIN],
        "unsupported",
    ),
    Case(
        "a mode from the future",
        [claim({"name": "r", "exactly": {"deviceClassName": "a", "allocationMode": "Some"}})],
        [PLAIN],
        "unsupported",
    ),
    Case(
        "a constraint from the future",
        [{"spec": {"devices": {"requests": [ask()], "constraints": [{}]}}}],
        [PLAIN],
        "unsupported",
    ),
    Case("an unknown name in a selector", [claim(ask(where="nothing"))], [PLAIN], "selector error"),
    Case(
        "an unknown name in a selector, all",
        [claim(ask("r", "a", "all", where="nothing"))],
        [PLAIN],
        "selector error",
    ),
    Case(
        "an unknown name in a class",
        [ONE],
        [PLAIN],
        "selector error",
        classes=[
            {"metadata": {"name": "a"}, "spec": {"selectors": [{"cel": {"expression": "nothing"}}]}}
        ],
    ),
    Case("a broken selector where nothing is tried", [claim(ask(where="nothing"))], [], "nothing"),
    Case(
        "a device of another driver meets no attribute",
        [claim(ask(where=f"device.attributes['{A}'].x"))],
        [PLAIN],
        "selector error",
    ),
    Case("classes that nobody asks for", [ONE], [PLAIN], ["r=p/d1"], classes=CLASSES[:1]),
]

CASES = [*FINDING, *ALL_OF_THEM, *ADMIN_ACCESS, *NODES, *SELECTOR_ERRORS]
