import base64
import zlib

import pytest

from dragoon.api import gang
from dragoon.api.gang import GangSpec, Owner, gang_of, wire
from dragoon.api.gang_plan import (
    PLAN_VERSION,
    HeldMember,
    Plan,
    PlannedClaim,
    PlannedMember,
    PlannedPool,
    Step,
    folded,
    pack,
    unpack,
)
from dragoon.errors import InvalidInputError

META = {"name": "g", "namespace": "team", "uid": "u"}


def test_a_gang_is_read_with_its_defaults() -> None:
    found = gang_of({"metadata": META, "spec": {"size": 3}})
    assert (str(found), found.key, found.group) == ("team/g", ("team", "g"), "g")
    assert found.spec == GangSpec(size=3)
    assert found.spec.timeout_seconds == 300
    assert found.status.phase is None
    assert not found.made_by_us


def test_its_group_is_its_label_and_its_owners_are_read() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "x"}
    meta = {
        **META,
        "labels": {gang.LABEL: "train", gang.MADE_BY: gang.MADE_BY_CONTROLLER},
        "ownerReferences": [{**owner, "blockOwnerDeletion": False}],
        "deletionTimestamp": "2026-11-29T19:00:00Z",
    }
    found = gang_of({"metadata": meta, "spec": {"size": 1, "owner": owner}})
    assert found.group == "train"
    assert found.made_by_us
    assert found.deleting
    assert found.owners == (Owner(api_version="batch/v1", kind="Job", name="j", uid="x"),)
    assert found.owners[0] == found.spec.owner


@pytest.mark.parametrize("spec", [{}, {"size": "two"}, {"size": 1, "topology": []}])
def test_a_spec_that_cannot_be_read_is_told(spec: object) -> None:
    with pytest.raises(InvalidInputError, match="Gang: spec: "):
        gang_of({"metadata": META, "spec": spec})


def test_a_status_that_cannot_be_read_counts_as_none_but_for_its_plan() -> None:
    plan = {"version": 1, "serial": 7, "step": "Hold", "since": ""}
    raw = {"metadata": META, "spec": {"size": 1}, "status": {"phase": "Dancing", "plan": plan}}
    found = gang_of(raw)
    assert found.status.phase is None
    assert found.status.plan is not None
    assert (found.status.plan.serial, found.status.plan.is_known) == (7, True)


@pytest.mark.parametrize("plan", [{"version": 1}, {"version": 1, "step": "Jump"}, "text"])
def test_a_plan_that_cannot_be_read_is_there_and_not_known(plan: object) -> None:
    found = gang_of({"metadata": META, "spec": {"size": 1}, "status": {"plan": plan}})
    assert found.status.plan is not None
    assert not found.status.plan.is_known


def test_what_a_later_version_adds_is_no_error() -> None:
    found = gang_of({"metadata": META, "spec": {"size": 1, "new": 1}, "status": {"newer": 2}})
    assert found.spec.size == 1


def test_a_plan_of_another_version_is_read_and_known_to_be_strange() -> None:
    raw = {"version": 99, "serial": 1, "step": "Fence", "since": ""}
    found = gang_of({"metadata": META, "spec": {"size": 1}, "status": {"plan": raw}})
    assert found.status.plan is not None
    assert not found.status.plan.is_known
    assert PLAN_VERSION == 1


def test_the_version_of_a_plan_is_always_written() -> None:
    plan = Plan(version=PLAN_VERSION, serial=1, step=Step.FENCE, since="")
    assert wire(plan) == {"version": 1, "serial": 1, "step": "Fence", "since": ""}


CLAIMS = (
    PlannedClaim(
        name="a",
        uid="1",
        allocation={"devices": {"results": [{"driver": "d", "pool": "p", "device": "gpu-0"}]}},
    ),
    PlannedClaim(name="b", uid="2", allocation={}),
)


def test_allocations_come_out_as_they_went_in() -> None:
    assert unpack(pack(CLAIMS)) == CLAIMS
    assert unpack(pack(())) == ()
    assert unpack("") == ()
    assert pack(CLAIMS) == pack(CLAIMS)


def test_512_members_with_8_gpus_fit_into_an_object() -> None:
    results = [
        {"request": "gpu", "driver": "gpu.dragoon.dev", "pool": "p", "device": f"gpu-{index}"}
        for index in range(8)
    ]
    many = (
        PlannedClaim(name=f"c{n}", uid=f"{n:032x}", allocation={"devices": {"results": results}})
        for n in range(512)
    )
    assert len(pack(many)) < 100_000


@pytest.mark.parametrize(
    "packed",
    [
        "no base64!",
        base64.b64encode(b"no zlib").decode(),
        base64.b64encode(zlib.compress(b"no json")).decode(),
        base64.b64encode(zlib.compress(b'[{"name": 1}]')).decode(),
        base64.b64encode(zlib.compress(b"[]")[:-3]).decode(),
        base64.b64encode(zlib.compress(b'[{"more":' + b"[" * 100_000)).decode(),
        base64.b64encode(zlib.compress(b" " * (65 * 2**20))).decode(),
    ],
)
def test_a_damaged_journal_is_told_and_never_half_read(packed: str) -> None:
    with pytest.raises(InvalidInputError, match=r"status\.plan\.packed"):
        unpack(packed)


@pytest.mark.parametrize(
    "allocation",
    [
        '{"devices": 3}',
        '{"devices": {"results": "text"}}',
        '{"devices": {"results": [{"driver": "d", "pool": "p"}]}}',
        '{"devices": {"results": [{"driver": "d", "pool": ["p"], "device": "g"}]}}',
        '{"devices": {"results": [{"driver": "d", "pool": "p", "device": "g", "shareID": 3}]}}',
        '{"devices": {"results": [{"driver": "d", "pool": "p", "device": "g", "tolerations": [3]}]}}',
    ],
)
def test_an_allocation_that_is_none_is_told_with_its_claim(allocation: str) -> None:
    text = f'[{{"name": "c", "uid": "u", "allocation": {allocation}}}]'
    with pytest.raises(InvalidInputError, match="packed: allocation of claim 'c'"):
        unpack(base64.b64encode(zlib.compress(text.encode())).decode())


def test_an_amount_that_is_none_is_told_with_its_claim() -> None:
    result = {"driver": "d", "pool": "p", "device": "g", "consumedCapacity": {"memory": "much"}}
    allocation = {"devices": {"results": [result]}}
    with pytest.raises(InvalidInputError, match="allocation of claim 'c': memory: "):
        unpack(pack([PlannedClaim(name="c", uid="u", allocation=allocation)]))


@pytest.mark.parametrize(
    "time", ["soon", "2026-11-29", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"]
)
def test_a_time_that_cannot_be_reckoned_with_is_as_good_as_no_status(time: str) -> None:
    good = "2026-11-29T19:00:00Z"
    plan = {"version": 1, "serial": 1, "step": "Hold", "since": good}
    status = {"phase": "Waiting", "missingSince": good, "plan": plan}
    kept = gang_of({"metadata": META, "spec": {"size": 1}, "status": status}).status
    assert (kept.missing_since, kept.plan and kept.plan.version) == (good, PLAN_VERSION)
    broken = gang_of(
        {"metadata": META, "spec": {"size": 1}, "status": {**status, "missingSince": time}}
    ).status
    assert (broken.missing_since, broken.plan) == ("", kept.plan)
    plan["since"] = time
    spoiled = gang_of({"metadata": META, "spec": {"size": 1}, "status": status}).status
    assert spoiled.plan is not None
    assert not spoiled.plan.is_known


def _plan(members: int, held: int = 0, packed: str = "") -> Plan:
    return Plan(
        version=PLAN_VERSION,
        serial=1,
        step=Step.COMMIT,
        since="",
        pools=tuple(PlannedPool(driver="d", pool=f"n{index}") for index in range(members)),
        members=tuple(
            PlannedMember(pod=f"p{index}", uid=f"u{index}", node=f"n{index}", claims=(f"c{index}",))
            for index in range(members)
        ),
        held=tuple(HeldMember(pod=f"h{index}", uid=f"v{index}", node="n") for index in range(held)),
        packed=packed,
    )


def _read_back(plan: Plan) -> Plan | None:
    status = {"plan": wire(folded(plan))}
    return gang_of({"metadata": META, "spec": {"size": 1}, "status": status}).status.plan


@pytest.mark.parametrize(("members", "held"), [(0, 0), (32, 0), (33, 0), (0, 33), (20, 20)])
@pytest.mark.parametrize("packed", ["", pack(CLAIMS)])
def test_a_plan_of_any_size_is_read_as_it_was_written(members: int, held: int, packed: str) -> None:
    plan = _plan(members, held, packed)
    assert _read_back(plan) == plan


def test_a_small_plan_is_readable_and_a_large_one_has_few_fields_for_the_api_server() -> None:
    assert wire(folded(_plan(32)))["members"][0]["pod"] == "p0"
    large = wire(folded(_plan(512)))
    assert not {"pools", "members", "held"} & large.keys()
    assert large == wire(folded(_plan(512)))
    assert len(large["packed"]) < 20_000


def test_a_large_plan_whose_members_are_damaged_is_there_and_not_known() -> None:
    raw = wire(folded(_plan(40, packed=pack(CLAIMS))))
    raw["packed"] = raw["packed"][:-8]
    found = gang_of({"metadata": META, "spec": {"size": 1}, "status": {"plan": raw}}).status.plan
    assert found is not None
    assert not found.is_known
