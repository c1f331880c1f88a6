"""The rights of the chart's hooks against the calls that `dragoon retire` and `dragoon check` make."""

from dragoon.api.gang import GATE
from dragoon.api.names import CLASS_GPU, DRIVER_NAME, FINALIZER, LABEL_GANG_UID
from dragoon.app import permissions, retiring
from dragoon.app.evidence import cluster
from dragoon.diagnose.checking import Evidence
from dragoon.gang.protocol.model import Kind
from dragoon.gang.protocol.objects import LABEL_KIND
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import CLAIMS, GANGS, PODS, SLICES, TAINT_RULES
from tests.scenario.recording import Recording, rights

_HERE = {"namespace": "team"}


async def left_behind() -> MemoryApi:
    """A cluster with everything that a controller and a plugin leave when they just go."""
    api = MemoryApi()
    gang = await api.create(GANGS, {"metadata": {"name": "g", **_HERE}, "spec": {"size": 2}})
    held = {"pod": "p0", "uid": "u", "node": "n", "claims": [{"name": "c", "uid": "v"}]}
    plan = {"version": 1, "serial": 1, "step": "Hold", "since": "", "held": [held]}
    await api.patch(GANGS, "g", {"status": {"plan": plan}}, namespace="team", subresource="status")
    rule = {"deviceSelector": {"driver": DRIVER_NAME, "pool": "n/gpu"}}
    taint = {"taint": {"key": "dragoon.dev/gang", "effect": "NoSchedule"}}
    labels = {LABEL_KIND: next(iter(Kind)).value, LABEL_GANG_UID: gang["metadata"]["uid"]}
    await api.create(
        TAINT_RULES, {"metadata": {"name": "r", "labels": labels}, "spec": {**rule, **taint}}
    )
    gated = {"containers": [], "schedulingGates": [{"name": GATE}]}
    await api.create(PODS, {"metadata": {"name": "p", **_HERE}, "spec": gated})
    wanted = {"requests": [{"name": "g", "exactly": {"deviceClassName": CLASS_GPU}}]}
    meta = {"name": "c", **_HERE, "finalizers": [FINALIZER]}
    await api.create(CLAIMS, {"metadata": meta, "spec": {"devices": wanted}})
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER_NAME, "nodeName": "n", "pool": pool, "devices": [{"name": "gpu-0"}]}
    await api.create(SLICES, {"metadata": {"name": "s"}, "spec": spec})
    return api


async def test_retiring_makes_every_call_that_it_is_granted_and_no_other() -> None:
    async def at_once(seconds: float) -> None:
        del seconds

    recording = Recording(await left_behind())
    assert await retiring.holders(recording, DRIVER_NAME) == []
    done = await retiring.retire(recording, DRIVER_NAME, pause=at_once)
    assert (done.released.pods, done.released.rules, done.released.plans) == (1, 1, 1)
    assert recording.made == rights(*permissions.RETIRE_RULES)


async def test_checking_reads_what_it_is_granted_and_would_write_nothing_more() -> None:
    recording = Recording(await left_behind())
    await cluster.gather(Evidence(), recording, source="test")
    # Dry runs, which RBAC cannot tell from writes: left out, and told as not checked.
    tried = {("create", one) for one in ("pods", "resourceclaims", "resourceslices")}
    asked = {("create", "subjectaccessreviews")}
    granted = rights(*permissions.CHECK_RULES)
    assert recording.made - tried | asked == granted
