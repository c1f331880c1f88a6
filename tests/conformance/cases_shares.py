"""Devices that are allocated more than once, and the capacity that each share takes."""

from typing import Any

from tests.conformance.notation import (
    Case,
    Raw,
    ask,
    choices,
    claim,
    dev,
    first,
    held,
    part,
    steps,
    wish,
)


def shared(name: str = "d1", cap: str | dict[str, Any] = "", **fields: Any) -> Raw:
    return dev(name, cap=cap, shared=True, **fields)


def of(amount: str = "", count: int | str = 1, name: str = "r", of_class: str = "shared") -> Raw:
    """A request for a shared device, with so much of the capacity m."""
    return ask(name, of_class, count, needs=f"m={amount}" if amount else "")


def claims(*amounts: str) -> list[Raw]:
    """A claim for each amount."""
    return [claim(of(amount)) for amount in amounts]


def stepped(value: str) -> dict[str, Any]:
    return {"m": steps(value)}


HALF = {"m": steps("1", "200m", "100m", "1")}
BEYOND = "18446744073709551616"
TAKEN = held("p/d1", share=True, takes="m=2")

AMOUNTS = [
    Case(
        "an amount of a capacity that is not there",
        claims("1"),
        [part(shared(cap="n=1"))],
        "nothing",
    ),
    Case(
        "all that have a capacity that none has",
        [claim(of("1", "all"))],
        [part(shared(cap="n=1"))],
        "nothing",
    ),
    Case(
        "two shares of a device without capacity",
        claims("", ""),
        [part(shared())],
        ["r=p/d1#", "r=p/d1#"],
    ),
    Case(
        "without an amount a share takes all",
        claims("", ""),
        [part(shared("d1", "m=1"), shared("d2", "m=1"))],
        ["r=p/d1#{m=1}", "r=p/d2#{m=1}"],
    ),
    Case(
        "a share that takes all leaves nothing",
        claims("", ""),
        [part(shared(cap="m=2"))],
        "nothing",
    ),
    Case(
        "two shares with amounts",
        claims("1", "1"),
        [part(shared(cap="m=2"))],
        ["r=p/d1#{m=1}", "r=p/d1#{m=1}"],
    ),
    Case(
        "two shares of the default",
        claims("", ""),
        [part(shared(cap=stepped("4")))],
        ["r=p/d1#{m=2}", "r=p/d1#{m=2}"],
    ),
    Case(
        "shares that take nothing by default",
        claims("", ""),
        [part(shared(cap={"m": choices("1", "0")}))],
        ["r=p/d1#{m=0}", "r=p/d1#{m=0}"],
    ),
    Case(
        "more than the only choice",
        claims("1"),
        [part(shared(cap={"m": choices("1", "0")}))],
        "nothing",
    ),
    Case(
        "less than the least",
        claims("1", "1"),
        [part(shared(cap=stepped("4")))],
        ["r=p/d1#{m=2}", "r=p/d1#{m=2}"],
    ),
    Case("up to the next step", claims("3"), [part(shared(cap=stepped("4")))], ["r=p/d1#{m=4}"]),
    Case(
        "one of the choices",
        claims("2"),
        [part(shared(cap={"m": choices("4", "1", "2")}))],
        ["r=p/d1#{m=2}"],
    ),
    Case(
        "up to the next choice",
        claims("2"),
        [part(shared(cap={"m": choices("3", "1", "3")}))],
        ["r=p/d1#{m=3}"],
    ),
    Case(
        "the second share is too much",
        claims("1", "2"),
        [part(shared(cap=stepped("2")))],
        "nothing",
    ),
    Case(
        "more than the most, less than there is",
        claims("6"),
        [part(shared(cap=stepped("10")))],
        "nothing",
    ),
    Case(
        "a fraction of a step, rounded up",
        claims("250m"),
        [part(shared(cap=HALF))],
        ["r=p/d1#{m=300m}"],
    ),
    Case("beyond 64 bits", claims(BEYOND), [part(shared(cap=stepped("4")))], "capacity error"),
    Case(
        "rounded beyond 64 bits",
        claims("9223372036854775807"),
        [part(shared(cap=stepped("4")))],
        "capacity error",
    ),
    Case(
        "beyond 64 bits for the first of two devices",
        claims(BEYOND),
        [part(shared("d1", stepped("4")), shared("d2", "m=36893488147419103232"))],
        "capacity error",
    ),
    Case(
        "beyond 64 bits, of all",
        [claim(of(BEYOND, "all"))],
        [part(shared(cap=stepped("4")))],
        "capacity error",
    ),
    Case("a negative amount", claims("-5"), [part(shared(cap="m=10"))], "capacity error"),
    Case(
        "amounts beyond 64 bits without steps",
        [claim(of("2", name="r0"), of("1e21", name="r1"))],
        [
            part(
                shared(
                    cap={
                        "m": {
                            "value": "1000000000000000000002",
                            "requestPolicy": {
                                "default": "1000000000000000000000",
                                "validRange": {"min": "2"},
                            },
                        }
                    }
                )
            )
        ],
        ["r0=p/d1#{m=2} r1=p/d1#{m=1e21}"],
    ),
]

IN_USE = [
    Case(
        "what is left of a device",
        claims("2"),
        [part(shared(cap=stepped("4")))],
        ["r=p/d1#{m=2}"],
        held=TAKEN,
    ),
    Case(
        "nothing is left of the first",
        claims("2"),
        [part(shared("d1", stepped("2")), shared("d2", stepped("2")))],
        ["r=p/d2#{m=2}"],
        held=TAKEN,
    ),
    Case("nothing is left", claims("2"), [part(shared(cap=stepped("2")))], "nothing", held=TAKEN),
    Case(
        "two shares of one device for a constraint, the other device for another claim",
        [claim(of("2", name="r0"), of("2", name="r1"), same=["x"]), *claims("2")],
        [
            part(
                shared("d2", stepped("2"), has={"x": "a"}),
                shared("d1", stepped("4"), has={"x": "b"}),
            )
        ],
        ["r0=p/d1#{m=2} r1=p/d1#{m=2}", "r=p/d2#{m=2}"],
    ),
    Case(
        "the alternative that there is room for",
        [
            claim(
                first(
                    "r",
                    *(wish("shared", needs=f"m={amount}") for amount in ("4", "2")),
                    wish("shared"),
                )
            )
        ],
        [part(shared(cap=stepped("2")))],
        ["r/s1=p/d1#{m=2}"],
    ),
    Case(
        "held as a whole",
        claims("1"),
        [part(shared(cap=stepped("2")))],
        "nothing",
        held=held("p/d1"),
    ),
    Case(
        "a share is held of what is no longer shared",
        [claim(of("1", of_class="a"))],
        [part(dev("d1", cap="m=2"))],
        ["r=p/d1"],
        held=held("p/d1", share=True, takes="m=1"),
    ),
    Case(
        "not of the class of shared devices any more",
        claims("1"),
        [part(dev("d1", cap="m=2"))],
        "nothing",
        held=held("p/d1", share=True, takes="m=1"),
    ),
    Case(
        "one request takes two shares of two devices",
        [claim(of("1", 2))],
        [part(shared("d1", "m=2"), shared("d2", "m=2"))],
        ["r=p/d1#{m=1} r=p/d2#{m=1}"],
    ),
    Case(
        "one request never takes a device twice",
        [claim(of("1", 2))],
        [part(shared("d1", "m=2"))],
        "nothing",
    ),
]

ALL_SHARES = [
    Case(
        "all with the capacity",
        [claim(of("2", "all"))],
        [part(shared("d1", "m=2"), shared("d2"))],
        ["r=p/d1#{m=2}"],
    ),
    Case(
        "all with enough of the capacity",
        [claim(of("2", "all"))],
        [part(shared("d1", "m=2"), shared("d2", "m=1"))],
        ["r=p/d1#{m=2}"],
    ),
    Case(
        "one share, then one of all",
        [claim(of("1", name="r0"), of("1", "all", "r1"))],
        [part(shared("d1", "m=2"), shared("d2", "m=1"))],
        ["r0=p/d1#{m=1} r1=p/d1#{m=1} r1=p/d2#{m=1}"],
    ),
    Case(
        "one of all, one in use",
        [claim(of("1", "all"))],
        [part(shared("d1", "m=2"), shared("d2", "m=1"))],
        ["r=p/d1#{m=1} r=p/d2#{m=1}"],
        held=held("p/d1", share=True, takes="m=1"),
    ),
    Case(
        "one share, then too little for one of all",
        [claim(of("1", name="r0"), of("1", "all", "r1"))],
        [part(shared("d1", "m=1"), shared("d2", "m=1"))],
        "nothing",
    ),
    Case(
        "one of all, one used up",
        [claim(of("1", "all"))],
        [part(shared("d1", "m=1"), shared("d2", "m=1"))],
        "nothing",
        held=held("p/d1", share=True, takes="m=1"),
    ),
]

DEDICATED = [
    Case(
        "an amount is a filter for a dedicated device",
        [claim(of("1", of_class="dedicated"))],
        [part(dev("d1", cap="m=1"))],
        ["r=p/d1"],
    ),
    Case(
        "a dedicated device is given once",
        [claim(of("1", of_class="dedicated"))] * 2,
        [part(dev("d1", cap="m=2"))],
        "nothing",
    ),
    Case(
        "a dedicated device that is too small",
        [claim(of("2", of_class="dedicated"))],
        [part(dev("d1", cap="m=1"))],
        "nothing",
    ),
    Case(
        "a class of dedicated devices",
        [claim(of("1", of_class="dedicated"))],
        [part(shared(cap="m=1"))],
        "nothing",
    ),
]

CASES = [*AMOUNTS, *IN_USE, *ALL_SHARES, *DEDICATED]
