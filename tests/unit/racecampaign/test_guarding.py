"""A device that was held twice is under a rule until its holders are gone."""

from dragoon.kube.port import CLAIMS, TAINT_RULES, Object, Resource
from racecampaign.guarding import let_go
from racecampaign.history import Event, History


class Story:
    """What happens to the device gpu-0 of the pool p, in the order of the revisions."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def held_by(self, *claims: str, device: str = "gpu-0") -> None:
        for name in claims:
            result = {"driver": "d", "pool": "p", "device": device}
            allocation = {"devices": {"results": [result]}}
            self._tell(CLAIMS, "MODIFIED", name, {"status": {"allocation": allocation}})

    def freed(self, *claims: str) -> None:
        for name in claims:
            self._tell(CLAIMS, "MODIFIED", name, {"status": {}})

    def deleted(self, claim: str) -> None:
        self._tell(CLAIMS, "DELETED", claim, {"status": {}})

    def ruled(self, name: str, *, pool: str = "p") -> None:
        self._tell(TAINT_RULES, "ADDED", name, _rule(pool))

    def rule_goes(self, name: str, *, pool: str = "p") -> None:
        self._tell(TAINT_RULES, "DELETED", name, _rule(pool))

    def _tell(self, resource: Resource, kind: str, name: str, body: Object) -> None:
        version = str(len(self.events) + 1)
        meta = {"name": name, "uid": name, "resourceVersion": version}
        home = {"namespace": "team"} if resource.namespaced else {}
        self.events.append(Event.of(resource, kind, {**body, "metadata": {**meta, **home}}))


def _rule(pool: str) -> Object:
    return {"spec": {"deviceSelector": {"driver": "d", "pool": pool}}}


def test_a_rule_that_goes_while_one_of_the_holders_is_there_is_told() -> None:
    story = Story()
    story.held_by("one", "two")
    story.ruled("guard")
    story.freed("one")
    story.rule_goes("guard")
    assert let_go(story.events) == [
        "device gpu-0 of p: held twice, and at revision 5 its rule is gone; still held by team/two"
    ]


def test_a_rule_that_goes_after_all_holders_is_right() -> None:
    story = Story()
    story.held_by("one", "two")
    story.ruled("guard")
    story.freed("one")
    story.deleted("two")
    story.rule_goes("guard")
    story.held_by("three")
    assert let_go(story.events) == []


def test_one_rule_takes_over_from_another() -> None:
    story = Story()
    story.ruled("fence")
    story.held_by("one", "two")
    story.ruled("guard")
    story.rule_goes("fence")
    assert let_go(story.events) == []
    story.rule_goes("guard")
    assert len(let_go(story.events)) == 1


def test_a_rule_on_another_pool_and_a_device_with_one_holder_are_nothing() -> None:
    story = Story()
    story.ruled("other", pool="q")
    story.held_by("one", "two")
    story.rule_goes("other", pool="q")
    story.ruled("guard")
    story.held_by("three", device="gpu-1")
    story.freed("one", "two")
    story.rule_goes("guard")
    assert let_go(story.events) == []


def test_the_order_in_which_the_watches_tell_makes_no_difference() -> None:
    story = Story()
    story.held_by("one", "two")
    story.ruled("guard")
    story.freed("one", "two")
    story.rule_goes("guard")
    for rules_first in (False, True):
        history = History()
        for event in sorted(story.events, key=lambda one: (one.resource == CLAIMS) == rules_first):
            history.add(event)
        assert let_go(history.take("team", len(story.events))) == []
