"""What pods ask for, and what is expected from that."""

from dragoon.allocator.gang.demand import mix_of, wishes_of
from dragoon.allocator.gang.mix import KINDS
from tests.unit.allocator.gang.objects import claim, either, wish


def test_pods_that_ask_for_the_same_wish_the_same_whatever_names_they_use() -> None:
    one = wishes_of({"cpu": 1000}, [claim("a", wish(2, name="left"))])
    other = wishes_of({"cpu": 1000, "example.com/nic": 1}, [claim("b", wish(2, name="right"))])
    assert one == other
    assert wishes_of({"cpu": 2000}, [claim("a", wish(2))]) != one


def test_of_alternatives_the_first_is_expected() -> None:
    assert wishes_of({}, [claim("a", either(("whole", 2), ("mig", 1)))]) == wishes_of(
        {}, [claim("b", wish(2, name="x"))]
    )


def test_what_is_not_typical_or_cannot_be_read_is_left_out() -> None:
    everything = {"name": "g", "exactly": {"deviceClassName": "whole", "allocationMode": "All"}}
    admin = wish(1, adminAccess=True)
    broken = {"metadata": {"name": "broken"}, "spec": {"devices": {"requests": [{"name": "g"}]}}}
    assert wishes_of({}, [claim("a", everything), claim("b", admin), broken]) == ()


def test_the_mix_has_the_most_frequent_wishes_by_their_share_and_one_of_each_kind() -> None:
    rare, frequent = (wishes_of({}, [claim("a", wish(count))])[0] for count in (1, 2))
    mix = mix_of({rare: 1, frequent: 3})
    assert [(one.weight, one.wish.count) for one in mix[:2]] == [(6144, 2), (2048, 1)]
    assert mix[2:] == KINDS
    many = {wishes_of({"cpu": cpu}, [claim("a", wish(1))])[0]: cpu for cpu in range(1, 100)}
    assert len(mix_of(many)) == 64 + len(KINDS)
    assert mix_of({}) == KINDS


def test_the_mix_does_not_depend_on_the_order_of_pods() -> None:
    wishes = [wishes_of({"cpu": cpu}, [claim("a", wish(1))])[0] for cpu in range(1, 50)]
    counts = dict.fromkeys(wishes, 1)
    assert mix_of(counts) == mix_of(dict(reversed(counts.items())))
