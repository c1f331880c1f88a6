"""What the witness of the race campaign calls a partial gang, and what it does not."""

from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, PODS, Object
from racecampaign.witness import Key, Witness

SIZE = 3


class Scene:
    """A gang of three as the watches show it."""

    def __init__(self) -> None:
        self.witness = Witness(MemoryApi())  # type: ignore[arg-type]  # nothing is asked here

    def member(self, name: str, *, devices: bool, node: str = "") -> None:
        meta = {
            "namespace": "team",
            "name": name,
            "uid": name,
            "labels": {"dragoon.dev/gang": "crew"},
            "annotations": {"dragoon.dev/gang-size": str(SIZE)},
        }
        spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}], "nodeName": node}
        self._put(PODS, {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})
        result = {"driver": "d", "pool": "p", "device": name}
        status = {"allocation": {"devices": {"results": [result]}}} if devices else {}
        claim = {"namespace": "team", "name": name, "uid": name}
        self._put(CLAIMS, {"metadata": claim, "status": status})

    def gone(self, name: str) -> None:
        for resource in (PODS, CLAIMS):
            self.witness.objects[resource].pop(Key("team", name, name))

    def found(self) -> list[str]:
        self.witness.look()
        return self.witness.found

    def _put(self, resource: object, body: Object) -> None:
        name = body["metadata"]["name"]
        self.witness.objects[resource][Key("team", name, name)] = body  # type: ignore[index]


def test_a_member_that_is_bound_while_another_never_had_devices_is_a_partial_gang() -> None:
    scene = Scene()
    for name in ("a", "b", "c"):
        scene.member(name, devices=name == "a", node="n" if name == "a" else "")
    (told,) = scene.found()
    assert "'b', 'c'" in told
    assert "1 of 3 had devices" in told


def test_members_that_wait_or_have_all_that_they_need_are_none() -> None:
    scene = Scene()
    for name in ("a", "b", "c"):
        scene.member(name, devices=False)
    assert scene.found() == []
    for name in ("a", "b", "c"):
        scene.member(name, devices=True)
    assert scene.found() == []
    scene.member("a", devices=True, node="n")
    assert scene.found() == []


def test_a_member_deleted_after_all_had_devices_is_replaced_while_the_others_start() -> None:
    scene = Scene()
    for name in ("a", "b", "c"):
        scene.member(name, devices=True)
    scene.witness.look()
    scene.gone("c")
    scene.member("c2", devices=False)
    scene.member("a", devices=True, node="n")
    assert scene.found() == []


def test_a_round_that_was_taken_back_does_not_count() -> None:
    scene = Scene()
    for name in ("a", "b"):
        scene.member(name, devices=True)
    scene.member("c", devices=False)
    scene.witness.look()
    for name in ("a", "b"):
        scene.member(name, devices=False)
    scene.witness.look()
    scene.member("c", devices=True, node="n")
    assert len(scene.found()) == 1
