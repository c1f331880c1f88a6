"""The region file: fixtures made here, byte by byte, from the observed layout of v1.2."""

import struct

import pytest

from dragoon.errors import StateError
from dragoon.prepare.enforcement import region
from dragoon.prepare.enforcement.region import Slot, Usage
from tests.unit.prepare.enforcement.regions import running

GIB = 1 << 30


ONE = Slot("GPU-0", 4 * GIB, 25)


TWO = Slot("GPU-1", 10 * GIB)


def at(data: bytes, form: str, offset: int) -> tuple[int, ...]:
    return struct.unpack_from(form, data, offset)


def test_a_new_region_has_every_field_where_the_library_looks_for_it() -> None:
    data = region.build([ONE, TWO], priority=0)
    assert len(data) == 2008953
    assert at(data, "<i", 0) == (19920718,)
    assert at(data, "<2I", 4) == (1, 2)
    assert at(data, "<i", 12) == (0,)
    assert at(data, "<Qi", 24) == (1, 128)
    assert at(data, "<Q", 56) == (2,)
    assert data[64:70] == b"GPU-0\0"
    assert data[160:166] == b"GPU-1\0"
    assert at(data, "<3Q", 1600) == (4 * GIB, 10 * GIB, 0)
    assert at(data, "<3Q", 1728) == (25, 100, 0)
    assert at(data, "<i", 2008896) == (0,), "no process yet"
    assert at(data, "<3i", 2008900) == (1, 2, 0), "throttling on, as the library starts, priority"
    assert at(data, "<Qi", 2008920) == (1, 128)


def test_the_priority_is_told() -> None:
    assert at(region.build([ONE], priority=1), "<i", 2008908) == (1,)


def test_nobody_uses_a_new_region() -> None:
    assert region.read(region.build([ONE, TWO], priority=1)) == (
        Usage("GPU-0", 4 * GIB, 25, 0, frozenset()),
        Usage("GPU-1", 10 * GIB, 100, 0, frozenset()),
    )


def test_usage_is_summed_over_the_processes_that_live() -> None:
    data = region.build([ONE, TWO], priority=1)
    data = running(data, 0, {0: 100, 1: 7})
    data = running(data, 1, {0: 1000}, status=0)
    data = running(data, 2, {0: 11}, status=2)
    assert [(one.used, one.pids) for one in region.read(data)] == [
        (111, frozenset({1, 3})),
        (7, frozenset({1, 3})),
    ]


def test_slots_beyond_the_count_are_stale() -> None:
    data = running(region.build([ONE], priority=1), 3, {0: 100}, count=2)
    assert region.read(data)[0].used == 0


def test_an_underflow_is_clamped_and_flagged() -> None:
    data = running(region.build([ONE], priority=1), 0, {0: 2**64 - 17})
    (usage,) = region.read(data)
    assert (usage.used, usage.suspicious) == (0, True)


@pytest.mark.parametrize("count", [-1, 2**31 - 1])
def test_a_count_that_cannot_be_reads_no_further_than_the_file(count: int) -> None:
    data = running(region.build([ONE], priority=1), 0, {0: 5}, count=count)
    assert region.read(data)[0].used in {0, 5}


def test_more_devices_than_there_can_be_are_not_read() -> None:
    data = bytearray(region.build([ONE], priority=1))
    struct.pack_into("<Q", data, 56, 2**40)
    assert len(region.read(bytes(data))) == 16


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 2008953,
        region.build([ONE], priority=1)[:-100],
        struct.pack("<iII", 19920718, 1, 3) + bytes(2008941),
        struct.pack("<i", 19920718) + bytes(1000000),
    ],
)
def test_another_layout_is_refused_rather_than_guessed(data: bytes) -> None:
    with pytest.raises(StateError, match=r"allowed is v1\.2"):
        region.read(data)


def test_the_limits_of_a_region_are_compared_all_of_them() -> None:
    head = region.build([ONE, TWO], priority=1)[: region.HEADER_BYTES]
    assert region.has_limits(head, [ONE, TWO])
    for other in ([ONE], [TWO, ONE], [ONE, TWO, ONE], [ONE, Slot("GPU-1", 10 * GIB, 99)]):
        assert not region.has_limits(head, other)
    assert not region.has_limits(head[:1000], [ONE, TWO])
    assert not region.has_limits(bytes(len(head)), [ONE, TWO])


@pytest.mark.parametrize(
    "slots",
    [
        [],
        [ONE] * 17,
        [Slot("GPU-0", 0)],
        [Slot("GPU-0", -1)],
        [Slot("GPU-0", 2**63)],
        [Slot("GPU-0", GIB, 0)],
        [Slot("GPU-0", GIB, 101)],
        [Slot("", GIB)],
        [Slot("G" * 96, GIB)],
    ],
)
def test_c23_what_the_library_would_read_as_no_limit_is_never_written(slots: list[Slot]) -> None:
    with pytest.raises(StateError):
        region.build(slots, priority=1)
