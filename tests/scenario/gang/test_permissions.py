"""The rights in app.permissions against the calls that a controller really makes."""

from typing import Final

from dragoon.api.names import FINALIZER
from dragoon.app import permissions
from dragoon.errors import ApiConflictError
from dragoon.gang.discovering.table import OBJECTS
from dragoon.kube.port import CLAIMS, PODS, TAINT_RULES, TEMPLATES
from tests.scenario.gang.bed import SPACE, Bed
from tests.scenario.gang.kueue import Kueue
from tests.scenario.gang.others import serve
from tests.scenario.pluginbed import until
from tests.scenario.recording import Recording, rights

ELSEWHERE: Final = {
    # Eviction and suspension of members that cannot be bound; what was given twice.
    ("create", "pods/eviction"),
    ("patch", "jobs"),
    ("patch", "devicetaintrules"),
    # Nodes that an autoscaler is asked for (test_provisioning).
    *((verb, "provisioningrequests") for verb in ("list", "watch", "create", "delete")),
    ("create", "podtemplates"),
    # An event that comes again is counted (tests/unit/kube/test_events).
    ("patch", "events"),
}
"""Calls of troubles that this cluster cannot have; other tests make them."""


async def test_every_call_is_granted_and_nothing_is_granted_that_is_never_called() -> None:
    async with Bed().up() as bed:
        recording = Recording(bed.api)
        for resource in OBJECTS.values():
            serve(bed.api, resource)
        async with bed.controller(recording) as controller:
            await until("it is ready", lambda: not controller.not_ready())
            # A rule whose creation was answered by a conflict is read.
            bed.api.faults.lose_answer(
                verb="create", resource=TAINT_RULES, error=lambda: ApiConflictError("there")
            )
            await bed.claim("bare", 1)
            await drop_finalizer(bed, "bare")
            # It asks for most of a node: a nomination holds the room.
            large = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "20"}}}
            await bed.pod("p0", gang="g", size="2", containers=[large])
            await bed.phase("g", "Gathering")
            # The second pod becomes an owner of the Gang too.
            await bed.pod("p1", gang="g", size="2", claim="bare")
            await bed.phase("g", "Running")
            # A Gang of bare pods that nobody collects is deleted, its rules with it.
            await bed.pod("w", gang="wrong", size="0")
            await until("it is told", lambda: ("create", "events") in recording.made)
            await bed.api.delete(PODS, "w", namespace=SPACE)
            await until("its Gang is deleted", lambda: ("delete", "gangs") in recording.made)
            await bed.end("p0")
            await bed.end("p1")
            await until("rules are gone", lambda: no_rules(bed))

    granted = rights(*permissions.CONTROLLER_RULES, *permissions.CONTROLLER_HOME_RULES)
    # The API server asks for it while it validates a status: nobody calls it.
    granted.discard(("patch", "resourceclaims/binding"))
    assert recording.made - granted == set()
    assert granted - recording.made == ELSEWHERE


async def drop_finalizer(bed: Bed, claim: str) -> None:
    """As a claim looks that was made for a class of somebody else."""
    raw = await bed.read_claim(claim)
    assert raw["metadata"]["finalizers"] == [FINALIZER]
    await bed.api.patch(CLAIMS, claim, {"metadata": {"finalizers": None}}, namespace=SPACE)


async def no_rules(bed: Bed) -> bool:
    return not await bed.rules()


def test_what_a_controller_may_do_with_pods_of_others_is_bounded() -> None:
    by_target = {rule.target: set(rule.verbs) for rule in permissions.CONTROLLER_RULES}
    assert by_target["pods"] == {"list", "watch", "patch"}
    assert not any("*" in verbs for verbs in by_target.values())
    # Creating pods and claims (never stored) is for its own namespace.
    home = rights(*permissions.CONTROLLER_HOME_RULES)
    assert {("create", "pods"), ("create", "resourceclaims")} <= home


def test_the_roles_for_its_own_namespace_are_bound_there() -> None:
    found = permissions.controller_objects("gpu.example.com", service_account="sa", namespace="ns")
    kinds = {item["kind"]: item for item in found}
    assert set(kinds) == {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
    assert kinds["Role"]["metadata"] == {"name": "gpu.example.com:controller", "namespace": "ns"}
    assert kinds["RoleBinding"]["roleRef"]["kind"] == "Role"
    assert kinds["RoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "sa", "namespace": "ns"}
    ]


async def test_with_kueue_every_call_is_granted_and_nothing_more_is() -> None:
    async with Bed().up() as bed:
        kueue = Kueue(bed)
        kueue.install()
        await kueue.check()
        await kueue.flavor()
        recording = Recording(bed.api)
        async with bed.controller(recording):
            await until("the check is active", kueue.is_active)
            await kueue.queued("train", 2)
            await kueue.reaches("train", "Ready")
    plurals = {resource.plural for resource in (*kueue.apis.all, TEMPLATES)}
    made = {
        (verb, target) for verb, target in recording.made if target.partition("/")[0] in plurals
    }
    assert made == rights(*permissions.KUEUE_RULES)
