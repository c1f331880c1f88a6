"""Pods as Argo Workflows and KServe make them: shapes of ours, no such project is installed here."""

from typing import Any

import pytest

from testbed.bed import Bed, is_running
from testbed.objects import claim_spec, container, pod, template
from testbed.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

Object = dict[str, Any]

_NONE: tuple[set[str], set[str]] = (set(), set())
_SEEN = "ls /dev/dragoon 2>/dev/null; env | grep -c ^DRAGOON_GPU_"


def test_of_an_argo_step_only_the_main_container_sees_the_gpu(bed: Bed, namespace: str) -> None:
    """An init container that fetches, one that waits and reports, and the step itself."""
    first = container("init", script=f"{_SEEN}; echo inputs > /argo/in")
    main = container("main", "gpu", script=f"{_SEEN}; cat /argo/in && echo results > /argo/out")
    wait = container("wait", script=f"{_SEEN}; until [ -s /argo/out ]; do sleep 0.1; done")
    for one in (first, wait, main):
        one["volumeMounts"] = [{"name": "var-run-argo", "mountPath": "/argo"}]
    step = pod("step", namespace, wait, main, templates={"gpu": "one"}, initContainers=[first])
    step["spec"] |= {
        "restartPolicy": "Never",
        "volumes": [{"name": "var-run-argo", "emptyDir": {}}],
    }
    bed.apply(template("one", namespace, claim_spec(1)), step)

    def over() -> Object | None:
        found = bed.get("pod", "step", namespace) or {}
        ended = found.get("status", {}).get("phase") in {"Succeeded", "Failed"}
        return found if ended else None

    found = until("the step has ended", over)
    assert found["status"]["phase"] == "Succeeded"
    seen = {
        name: bed.kubectl("logs", "-n", namespace, "step", "-c", name).split()
        for name in ("init", "wait", "main")
    }
    assert seen["init"] == seen["wait"] == ["0"]
    assert len(seen["main"]) == 3
    assert seen["main"][0].startswith("gpu-")
    assert seen["main"][1:] == ["1", "inputs"]
    until(
        "the claim of a step that has ended is gone, though its pod is kept",
        lambda: not bed.items("resourceclaims", "-n", namespace),
    )


def test_a_predictor_is_rolled_over_with_one_gpu_to_spare(bed: Bed, namespace: str) -> None:
    """KServe's raw deployment: pods of a Deployment, each with a claim from a template.

    The new one takes the spare GPU before the old one goes: nobody is without a predictor.
    """
    node = min(bed.plugins)
    predictors = 2
    bed.apply(
        template("others", namespace, claim_spec(8 - predictors - 1)),
        pod(
            "others",
            namespace,
            container("main", "others"),
            templates={"others": "others"},
            nodeSelector={"kubernetes.io/hostname": node},
        ),
    )
    bed.running("others", namespace)
    bed.apply(template("one", namespace, claim_spec(1)), _predictor(namespace, node, predictors, 1))
    first = until("all predictors run", lambda: _serving(bed, namespace, predictors))
    assert _devices_of(bed, namespace, first) == _devices_of(bed, namespace, first, seen=True)

    bed.apply(_predictor(namespace, node, predictors, 2))

    def rolled() -> list[Object] | None:
        ready = [one for one in _pods(bed, namespace) if is_running(one)]
        assert len(ready) >= predictors, "one predictor too few"
        found = _serving(bed, namespace, predictors)
        new = found and all(one["metadata"]["labels"]["revision"] == "2" for one in found)
        return found if new else None

    second = until("all of them are new", rolled, within=200)
    assert not {_name(one) for one in first} & {_name(one) for one in second}
    held = _devices_of(bed, namespace, second)
    assert len(set().union(*held.values())) == predictors
    assert held == _devices_of(bed, namespace, second, seen=True)


def test_a_sidecar_that_starts_before_shares_nothing_of_the_predictors_gpu(
    bed: Bed, namespace: str
) -> None:
    """KServe's storage initialiser, an agent as native sidecar, and the predictor."""
    fetch = container("storage-initializer", script=f"[ $({_SEEN}) = 0 ]")
    agent = container("agent")
    agent["restartPolicy"] = "Always"
    bed.apply(
        template("one", namespace, claim_spec(1)),
        pod(
            "predictor",
            namespace,
            container("kserve-container", "gpu"),
            templates={"gpu": "one"},
            initContainers=[fetch, agent],
        ),
    )
    found = bed.running("predictor", namespace)
    (own,) = _devices_of(bed, namespace, [found]).values()
    assert bed.devices_seen("predictor", namespace, "kserve-container") == (own, own)
    assert bed.devices_seen("predictor", namespace, "agent") == _NONE


def _predictor(namespace: str, node: str, replicas: int, revision: int) -> Object:
    """A Deployment as KServe makes it for an InferenceService."""
    made = pod(
        "predictor",
        namespace,
        container("kserve-container", "gpu"),
        templates={"gpu": "one"},
        nodeSelector={"kubernetes.io/hostname": node},
    )
    labels = {"app": "isvc.llm-predictor", "component": "predictor"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "llm-predictor", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": {**labels, "revision": str(revision)}},
                "spec": made["spec"],
            },
        },
    }


def _pods(bed: Bed, namespace: str) -> list[Object]:
    return bed.items("pods", "-n", namespace, "-l", "component=predictor")


def _serving(bed: Bed, namespace: str, count: int) -> list[Object] | None:
    """The predictors, where so many run and none is going."""
    found = _pods(bed, namespace)
    steady = all(is_running(one) and not one["metadata"].get("deletionTimestamp") for one in found)
    return found if steady and len(found) == count else None


def _name(one: Object) -> str:
    return str(one["metadata"]["name"])


def _devices_of(
    bed: Bed, namespace: str, pods: list[Object], *, seen: bool = False
) -> dict[str, set[str]]:
    """The devices of each pod: of its claim, or as its container sees them."""
    found: dict[str, set[str]] = {}
    for one in pods:
        name = _name(one)
        (made,) = one["status"]["resourceClaimStatuses"]
        found[name] = set(bed.allocated(made["resourceClaimName"], namespace))
        if seen:
            found[name], named = bed.devices_seen(name, namespace, "kserve-container")
            assert named == found[name]
    return found
