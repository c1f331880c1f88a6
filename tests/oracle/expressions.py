"""Random expressions over a device: mostly well typed, with every construct, biased to edges.

The grammar is text: `<int>` stands for any int expression, `<bool/x>` for a bool expression in
which `x` is a variable too.
"""

import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

_DEPTH = 3
_PART = re.compile(r"<(\w+)((?:/\w+)*)>")

PLAIN = {
    "int": ["0", "1", "2", "3", "-1", "9223372036854775807", "-9223372036854775808"],
    "uint": ["0u", "1u", "3u", "18446744073709551615u"],
    "double": [
        "0.0",
        "1.0",
        "1.5",
        "-2.5",
        "1e19",
        "9223372036854775808.0",
        "(0.0/0.0)",
        "(1.0/0.0)",
    ],
    "string": [
        "''",
        "'a'",
        "'ab'",
        "'L4'",
        "'\\u00e4x'",
        "'1'",
        "'a-b-a'",
        "'1.2.3'",
        "'2Gi'",
        "device.driver",
    ],
    "bool": ["true", "false", "device.allowMultipleAllocations"],
    "quantity": [
        *(
            f"quantity('{text}')"
            for text in ["1Gi", "1024Mi", "1.5", "1500m", "0", "-1", "x", "9223372036854775807"]
        ),
        *("device.capacity[<domain>].memory",) * 3,
    ],
    "version": [
        *(f"semver('{text}')" for text in ["1.2.3", "1.2.3-rc.1", "10.0.0", "0.0.0", "1.2"]),
        *(f"semver('{text}', true)" for text in ["1", "v1.2", "01.2.3", "x"]),
        *("device.attributes[<domain>].v",) * 3,
    ],
    "list": ["[]", "[1]", "[1, 2, 3]", "[3, 1, 1]", "['a', 'b']", "[1.0, 2.5]"],
    "address": [
        *("ip('10.0.0.1')", "ip('::1')", "ip('fe80::1')", "ip('x')", "ip('255.255.255.255')"),
        *("cidr('10.0.0.0/8').ip()", "ip(<string>)"),
    ],
    "network": [
        *("cidr('10.0.0.0/8')", "cidr('10.0.0.1/32')", "cidr('2001:db8::/33')", "cidr('::/0')"),
        *("cidr('1.2.3.4')", "cidr(<string>)"),
    ],
    "url": [
        *("url('https://user@a.example:8443/p%2Fq?x=1&x=2#f')", "url('/a')", "url('x')"),
        *("url('http://[::1]:80/')", "url(<string>)"),
    ],
    "format": [
        *("format.dns1123Label()", "format.qualifiedName()", "format.uri()", "format.date()"),
        *("format.named('uuid').value()", "format.named(<string>).value()"),
    ],
    "duration": [
        *("duration('90m')", "duration('-1.5s')", "duration('0')", "duration(<string>)"),
        "duration('9223372036.854775807s')",
    ],
    "time": [
        *("timestamp('2026-02-28T23:59:59.5Z')", "timestamp('0001-01-01T00:00:00+01:00')"),
        *("timestamp('2024-02-29T12:00:00-02:30')", "timestamp(<int>)", "timestamp(<string>)"),
    ],
    "clauses": ["'%s'", "'%s-%s'", "'%d'", "'%.2f|%e'", "'%x%%'", "'%b %o'", "'%X'", "<string>"],
    "map": [
        *(
            "{}",
            "{'a': 1}",
            "{1: 'a', 2: 'b'}",
            "{true: 1}",
            "device.attributes",
            "device.capacity",
        ),
        *("device.attributes[<domain>]", "device.capacity[<domain>]"),
    ],
    "optional": [
        *("optional.none()", "optional.of(1)", "optional.ofNonZeroValue('')"),
        *("device.attributes[?<domain>].?<name>", "device.capacity[<domain>].?memory"),
    ],
    "attribute": [
        *("device.attributes[<domain>].<name>", "device.attributes[<domain>]['<name>']"),
        "device.attributes[?<domain>].?<name>.orValue(device.driver)",
        "device.attributes[<domain>].?<name>.orValue(0)",
    ],
    "domain": ["'d'", "'d'", "'o.x'", "'nope'", "device.driver"],
    "name": ["i", "s", "b", "v", "l", "missing"],
    "order": ["<", "<=", ">", ">="],
    "equal": ["==", "!="],
    "number": ["<int>", "<uint>", "<double>", "<attribute>"],
    "any": [
        *("<number>", "<string>", "<list>", "<version>", "<attribute>", "<map>", "<address>"),
        *("<duration>", "<time>", "<url>", "<quantity>"),
    ],
}
"""What a part can be without going deeper."""

DEEP = {
    "int": [
        *("<address>.family()", "<network>.prefixLength()", "int(<time>)", "int(<duration>)"),
        *("<duration>.getSeconds()", "<duration>.getMilliseconds()", "<time>.getDayOfYear()"),
        *("<time>.getHours()", "<time>.getFullYear()", "<url>.getQuery().size()"),
        *(
            "(<int> + <int>)",
            "(<int> - <int>)",
            "(<int> * <int>)",
            "(<int> / <int>)",
            "(<int> % <int>)",
        ),
        *(
            "-<int>",
            "int(<int>)",
            "int(<string>)",
            "int(<double>)",
            "int(<uint>)",
            "size(<string>)",
        ),
        *("size(<list>)", "<map>.size()", "<string>.indexOf(<string>)", "<list>.indexOf(<any>)"),
        *("<string>.lastIndexOf(<string>, <int>)", "<string>.indexOf(<string>, <int>)"),
        *(
            "<quantity>.compareTo(<quantity>)",
            "<version>.compareTo(<version>)",
            "<version>.major()",
        ),
        *("<version>.minor()", "<version>.patch()", "<quantity>.asInteger()", "sign(<quantity>)"),
        *(
            "<list>[<int>]",
            "<list>.sum()",
            "<list>.min()",
            "<list>.max()",
            "(<bool> ? <int> : <int>)",
        ),
        *(
            "<list>.first().orValue(<int>)",
            "<list>.last().orValue(<int>)",
            "<list>[?<int>].orValue(0)",
        ),
        *("<map>[<any>]", "cel.bind(x, <any>, <int/x>)"),
    ],
    "uint": ["(<uint> + <uint>)", "(<uint> - <uint>)", "(<uint> % <uint>)", "uint(<int>)"],
    "double": [
        *("(<double> + <double>)", "(<double> * <double>)", "(<double> / <double>)", "-<double>"),
        *("double(<int>)", "double(<string>)", "<quantity>.asApproximateFloat()"),
    ],
    "string": [
        *(
            "(<string> + <string>)",
            "<string>.lowerAscii()",
            "<string>.upperAscii()",
            "<string>.trim()",
        ),
        *("string(<int>)", "string(<double>)", "string(<bool>)", "<string>.charAt(<int>)"),
        *(
            "<string>.substring(<int>)",
            "<string>.substring(<int>, <int>)",
            "<string>.find('[a-z]+')",
        ),
        *("<string>.replace(<string>, <string>)", "<string>.replace(<string>, <string>, <int>)"),
        *("<string>.split(<string>).join('+')", "<string>.split(<string>, <int>).join()"),
        "<string>.findAll('[a-z]').join(<string>)",
        *("string(<address>)", "string(<network>)", "string(<duration>)", "string(<time>)"),
        *("<url>.getHost()", "<url>.getHostname()", "<url>.getPort()", "<url>.getScheme()"),
        *("<url>.getEscapedPath()", "strings.quote(<string>)", "<clauses>.format([<any>])"),
        *("<clauses>.format([<int>, <string>])", "<clauses>.format(<list>)", "string(dyn(<any>))"),
    ],
    "quantity": [
        *("<quantity>.add(<quantity>)", "<quantity>.add(<int>)", "<quantity>.sub(<quantity>)"),
    ],
    "list": [
        *("(<list> + <list>)", "[<int>, <int>]", "[<any>, <any>]", "[?<optional>, ?<optional>]"),
        *(
            "<list>.map(x, <int/x>)",
            "<list>.map(x, <bool/x>, <any/x>)",
            "<list>.filter(x, <bool/x>)",
        ),
        *("<list>.transformList(y, x, <int/x/y>)", "<list>.sort()", "<list>.distinct()"),
        *("<list>.reverse()", "<list>.slice(<int>, <int>)", "[<list>, <list>].flatten()"),
        *("<list>.sortBy(x, <int/x>)", "<list>.sortBy(x, <any/x>)", "<map>.map(x, x).sortBy(x, x)"),
        *("<list>.map(x, <time/x>)", "[<duration>, <duration>].sort()", "[<address>, <address>]"),
        *("lists.range(<int>).slice(0, 1)", "<map>.map(x, <any/x>)", "[dyn(<any>), dyn(<any>)]"),
    ],
    "map": [
        *("{<string>: <int>}", "{<int>: <any>}", "{?<string>: <optional>}"),
        *("<map>.transformMap(y, x, <any/x/y>)", "<list>.transformMap(y, x, <int/x/y>)"),
        "<map>.transformMapEntry(y, x, {<string>: <any/x/y>})",
    ],
    "optional": [
        *(
            "optional.of(<any>)",
            "optional.ofNonZeroValue(<any>)",
            "<list>[?<int>]",
            "<map>[?<any>]",
        ),
        *("<optional>.or(<optional>)", "<optional>.optMap(x, <any/x>)", "<list>.first()"),
        *("<optional>.optFlatMap(x, <optional/x>)", "<attribute>.?<name>", "<optional>.?<name>"),
        "<optional>[<any>]",
    ],
    "network": ["<network>.masked()"],
    "duration": [
        *("(<duration> + <duration>)", "(<duration> - <duration>)", "(<time> - <time>)"),
        "[<duration>, <duration>].sum()",
    ],
    "time": ["(<time> + <duration>)", "(<time> - <duration>)", "[<time>, <time>].max()"],
    "bool": [
        *("isIP(<string>)", "isCIDR(<string>)", "isURL(<string>)", "ip.isCanonical(<string>)"),
        *("<address>.isLoopback()", "<address>.isGlobalUnicast()", "<address> == <address>"),
        *("<network>.containsIP(<address>)", "<network>.containsIP(<string>)"),
        *("<network>.containsCIDR(<network>)", "<network> == <network>", "<url> == <url>"),
        *("<format>.validate(<string>).hasValue()", "<format> == <format>"),
        *("<duration> <order> <duration>", "<time> <order> <time>", "<time> <equal> <time>"),
        *("lists.range(100).all(x, lists.range(<int>).all(y, <bool/x/y>))",),
        "lists.range(99).all(x, lists.range(99).exists(y, x == y))",
        "lists.range(999970).size() > 0 && <bool>",
        *("(<bool> && <bool>)", "(<bool> || <bool>)", "(<bool> && <bool> && <bool>)", "!<bool>"),
        *("(<bool> ? <bool> : <bool>)", "<number> <order> <number>", "<string> <order> <string>"),
        *("<any> <equal> <any>", "dyn(<any>) <equal> dyn(<any>)", "dyn(<any>) <order> dyn(<any>)"),
        *(
            "<quantity> <equal> <quantity>",
            "<version> <equal> <version>",
            "<optional> == <optional>",
        ),
        *("<quantity>.isLessThan(<quantity>)", "<version>.isGreaterThan(<version>)"),
        *("<quantity>.isInteger()", "isQuantity(<string>)", "isSemver(<string>)"),
        *("<any> in <list>", "<any> in <map>", "has(device.attributes[<domain>].<name>)"),
        *(
            "<string>.contains(<string>)",
            "<string>.startsWith(<string>)",
            "<string>.endsWith(<string>)",
        ),
        *(
            "<string>.matches('^[a-zA-Z]+[0-9]?$')",
            "<list>.all(x, <bool/x>)",
            "<list>.exists(x, <bool/x>)",
        ),
        *(
            "<list>.exists_one(x, <bool/x>)",
            "<list>.all(y, x, <bool/x/y>)",
            "<map>.all(x, <bool/x>)",
        ),
        *(
            "<map>.exists(y, x, <bool/x/y>)",
            "<map>.existsOne(y, x, <bool/x/y>)",
            "<list>.isSorted()",
        ),
        *(
            "cel.bind(x, <any>, <bool/x>)",
            "sets.contains(<list>, <list>)",
            "sets.equivalent(<list>, <list>)",
        ),
        *("sets.intersects(<list>, <list>)", "<optional>.hasValue()", "<optional>.orValue(<bool>)"),
        *("<attribute>.includes(<any>)", "<attribute>", "bool(<string>)", "has(<map>.<name>)"),
        *("<attribute>.exists(x, <bool/x>)", "<optional>.optMap(x, <bool/x>).orValue(false)"),
    ],
}
"""What a part can be that has parts one level down."""


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Whole selectors."""
    return written(lambda options: draw(st.sampled_from(options)), "bool")


def written(
    choose: Callable[[list[str]], str], kind: str, depth: int = _DEPTH, scope: tuple[str, ...] = ()
) -> str:
    """One expression of a kind; variables in scope and attributes can stand for any value."""
    choices = list(PLAIN.get(kind, ()))
    if depth > 0:
        choices = [*DEEP.get(kind, ()), *choices[:2]] if kind in DEEP else choices
    if kind in {"int", "string", "bool", "list", "any"}:
        choices += [*scope, "<attribute>"]
    template = choose(choices)

    def part(match: re.Match[str]) -> str:
        inner = (*scope, *filter(None, match[2].split("/")))
        return written(choose, match[1], depth - (match[1] in DEEP), inner)

    return _PART.sub(part, template)


def devices() -> st.SearchStrategy[dict[str, Any]]:
    """Devices with some of the attributes that the expressions read."""
    scalars: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "i": st.sampled_from((0, 1, 3, -1, 2**63 - 1, -(2**63))).map(lambda v: {"int": v}),
        "s": st.sampled_from(("", "a", "L4", "\u00e4x", "1.2.3")).map(lambda v: {"string": v}),
        "b": st.booleans().map(lambda v: {"bool": v}),
        "v": st.sampled_from(("1.2.3", "1.2.3-rc.1", "10.0.0")).map(lambda v: {"version": v}),
        "l": st.lists(st.integers(0, 2), min_size=1, max_size=3).map(lambda v: {"ints": v}),
    }
    attributes = st.fixed_dictionaries(
        {}, optional={**scalars, **{f"o.x/{name}": value for name, value in scalars.items()}}
    )
    size = st.sampled_from(("1Gi", "1024Mi", "1500m", "0")).map(lambda v: {"value": v})
    return st.fixed_dictionaries(
        {
            "name": st.just("x"),
            "attributes": attributes,
            "capacity": st.fixed_dictionaries({}, optional={"memory": size, "o.x/memory": size}),
        },
        optional={"allowMultipleAllocations": st.booleans()},
    )
