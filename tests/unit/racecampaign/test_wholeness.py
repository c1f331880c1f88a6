"""What the race campaign calls a partial gang, and what it does not."""

from dragoon.api.gang import GATE
from dragoon.kube.port import CLAIMS, PODS, Object, Resource
from racecampaign.history import Event, History
from racecampaign.wholeness import partial_gangs

SIZES = {"crew": 3}
ALL = ("a", "b", "c")


class Story:
    """What happens to a gang of three, in the order of the revisions."""

    def __init__(self, *members: str) -> None:
        self.events: list[Event] = []
        for name in members:
            self.comes(name)

    def comes(self, name: str) -> None:
        self.taken(name, kind="ADDED")
        self._pod("ADDED", name)

    def given(self, *names: str) -> None:
        for name in names:
            self._claim("MODIFIED", name, device=name)

    def taken(self, *names: str, kind: str = "MODIFIED") -> None:
        """Their claims have no devices."""
        for name in names:
            self._claim(kind, name)

    def freed(self, name: str) -> None:
        """Its gate goes."""
        self._pod("MODIFIED", name, is_gated=False)

    def deleted(self, name: str) -> None:
        """The pod only: the claim of a pod that is gone is freed, and goes, later."""
        self._pod("DELETED", name)

    def claim_goes(self, name: str) -> None:
        self.taken(name)
        self._claim("DELETED", name)

    def found(self) -> list[str]:
        return partial_gangs(self.events, SIZES)

    def _pod(self, kind: str, name: str, *, is_gated: bool = True) -> None:
        meta: Object = {"labels": {"dragoon.dev/gang": "crew"}}
        gates = [{"name": gate} for gate in (GATE, "of-others/gate")[not is_gated :]]
        claims = [{"name": "gpu", "resourceClaimName": name}]
        spec = {"resourceClaims": claims, "schedulingGates": gates}
        self._tell(PODS, kind, name, {"spec": spec, "status": {"phase": "Pending"}}, meta)

    def _claim(self, kind: str, name: str, *, device: str = "") -> None:
        result = {"driver": "d", "pool": "p", "device": device}
        status = {"allocation": {"devices": {"results": [result]}}} if device else {}
        self._tell(CLAIMS, kind, name, {"status": status}, {})

    def _tell(self, resource: Resource, kind: str, name: str, body: Object, meta: Object) -> None:
        version = str(len(self.events) + 1)
        own = {"namespace": "team", "name": name, "uid": name, "resourceVersion": version}
        self.events.append(Event.of(resource, kind, {**body, "metadata": {**meta, **own}}))


def test_a_member_that_is_set_free_while_others_never_had_devices_is_a_partial_gang() -> None:
    story = Story(*ALL)
    story.given("a")
    story.freed("a")
    story.given("b", "c")
    (told,) = story.found()
    assert told == (
        "gang team/crew: at revision 8 pod a is free, and 1 of 3 members have devices; "
        "living ones without: b, c"
    )


def test_members_that_wait_or_have_all_that_they_need_are_none() -> None:
    story = Story(*ALL)
    assert story.found() == []
    story.given(*ALL)
    assert story.found() == []
    story.freed("a")
    assert story.found() == []


def test_members_that_are_not_there_yet_have_no_devices() -> None:
    story = Story("a", "b")
    story.given("a", "b")
    story.freed("a")
    (told,) = story.found()
    assert told.endswith("2 of 3 members have devices; living ones without: none")


def test_a_member_deleted_after_all_had_devices_is_replaced_while_the_others_start() -> None:
    story = Story(*ALL)
    story.given(*ALL)
    story.deleted("c")
    story.claim_goes("c")
    story.comes("c2")
    story.freed("a")
    assert story.found() == []


def test_what_a_deleted_member_had_in_a_round_that_was_taken_back_does_not_count() -> None:
    story = Story(*ALL)
    story.given("b", "c")
    story.deleted("c")
    story.comes("c2")
    story.taken("b")
    story.given("a", "b")
    story.freed("a")
    (told,) = story.found()
    assert told.endswith("2 of 3 members have devices; living ones without: c2")


def test_a_member_deleted_while_the_last_ones_are_given_theirs_counts() -> None:
    """The protocol looks at all claims once more, and a pod can go unseen just before."""
    story = Story(*ALL)
    story.given("a", "b")
    story.deleted("a")
    story.given("c")
    story.claim_goes("a")
    story.freed("b")
    assert story.found() == []


def test_a_round_that_was_taken_back_does_not_count() -> None:
    story = Story(*ALL)
    story.given(*ALL)
    story.taken("a", "b", "c")
    story.given("a", "b")
    story.freed("a")
    (told,) = story.found()
    assert told.endswith("2 of 3 members have devices; living ones without: c")


def test_what_comes_after_the_first_was_set_free_is_not_judged() -> None:
    story = Story(*ALL)
    story.given(*ALL)
    story.freed("a")
    story.taken("b", "c")
    story.freed("b")
    assert story.found() == []


def _delivered(*, pods_first: bool, given: tuple[str, ...]) -> list[Event]:
    """A story as two watches tell it of which one lags behind the other."""
    story, history = Story(*ALL), History()
    story.given(*given)
    story.freed("a")
    for event in sorted(story.events, key=lambda one: (one.resource == PODS) != pods_first):
        history.add(event)
    return history.take("team", len(story.events))


def test_the_order_in_which_the_watches_tell_makes_no_difference() -> None:
    for pods_first in (False, True):
        assert partial_gangs(_delivered(pods_first=pods_first, given=ALL), SIZES) == []
        assert len(partial_gangs(_delivered(pods_first=pods_first, given=("a", "c")), SIZES)) == 1
