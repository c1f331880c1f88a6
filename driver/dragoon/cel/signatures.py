"""Types of what is syntax, not function: literals, fields of the device, indexing, `in`.

Source: cel-go 0.29 `common/stdlib`; k8s.io/dynamic-resource-allocation 0.37 `cel/compile.go`.
"""

from typing import Final

from dragoon.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    INT,
    NULL,
    QUANTITY,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    parameter,
)
from dragoon.cel.values import UInt

FIELDS: Final[dict[str, Type]] = {
    "driver": STRING,
    "attributes": map_of(STRING, map_of(STRING, DYN)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    "allowMultipleAllocations": BOOL,
}
"""Fields of `device` in kube-scheduler 1.37, where attributes may be lists."""

LITERALS: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
TYPE_NAMES: Final = frozenset(
    ("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint")
)
KEY: Final = parameter("K")
VALUE: Final = parameter("V")
INDEX: Final[tuple[tuple[Type, Type, Type], ...]] = (
    (list_of(VALUE), INT, VALUE),
    (map_of(KEY, VALUE), KEY, VALUE),
    (optional_of(list_of(VALUE)), INT, optional_of(VALUE)),
    (optional_of(map_of(KEY, VALUE)), KEY, optional_of(VALUE)),
)
"""What `[]` takes and gives: operand, index, result. With `?` every result is optional."""
MEMBERSHIP: Final = (list_of(KEY), map_of(KEY, VALUE))
