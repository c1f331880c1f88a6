"""Gangs in the end-to-end tests: their pods, what they hold, and what the controller says."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dragoon.api import gang
from dragoon.quantity import nanos, parse
from testbed.bed import Bed, is_running
from testbed.controller import Controller
from testbed.objects import CLASS, SAME_DOMAIN, SLEEP, claim_spec, container, pod, template
from testbed.waiting import PATIENCE, until

Object = dict[str, Any]

PAIR = claim_spec(2, constraints=(SAME_DOMAIN,))
ADDRESS = 'device.attributes["resource.kubernetes.io"].pciBusID'


@dataclass
class Gangs:
    """One namespace in which gangs are tried, with the controller that serves them."""

    bed: Bed
    controller: Controller
    namespace: str

    @property
    def nodes(self) -> list[str]:
        return sorted(self.bed.plugins)

    def milli_cpu(self, node: str) -> int:
        """The CPU of a node that pods may ask for, in thousandths."""
        found = self.bed.get("node", node)
        assert found is not None
        return nanos(parse(str(found["status"]["allocatable"]["cpu"]))) // 1_000_000

    def template(self, name: str, spec: Object) -> None:
        self.bed.apply(template(name, self.namespace, spec))

    def job(
        self,
        name: str,
        size: int,
        *templates: str,
        cpu: str = "",
        group: str = "",
        script: str = SLEEP,
    ) -> None:
        """A Job whose pods are a gang: `size` at once, a claim of each template for each."""
        member = container("main", *templates, script=script)
        if cpu:
            member["resources"]["requests"] = {"cpu": cpu}
        made = pod(name, self.namespace, member, templates={one: one for one in templates})
        self.bed.apply(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "parallelism": size,
                    "completions": size,
                    "completionMode": "Indexed",
                    "template": {
                        "metadata": {"labels": {gang.LABEL: group or name}},
                        "spec": {**made["spec"], "restartPolicy": "Never"},
                    },
                },
            }
        )

    def member(
        self, name: str, group: str, size: int, *containers: Object, **references: Any
    ) -> None:
        """A bare pod that is a member."""
        made = pod(name, self.namespace, *containers, **references)
        made["metadata"] |= {
            "labels": {gang.LABEL: group},
            "annotations": {gang.ANNOTATION_SIZE: str(size)},
        }
        self.bed.apply(made)

    def holder(self, name: str, node: str, count: int) -> None:
        """A pod outside of every gang that holds GPUs of a node; it runs when this returns."""
        self.template(name, claim_spec(count))
        self.bed.apply(
            pod(
                name,
                self.namespace,
                container("main", name),
                templates={name: name},
                nodeSelector={"kubernetes.io/hostname": node},
            )
        )
        self.bed.running(name, self.namespace)

    def pods(self, group: str) -> list[Object]:
        return self.bed.items("pods", "-n", self.namespace, "-l", f"{gang.LABEL}={group}")

    def claims(self, group: str) -> list[Object]:
        """The claims of the members."""
        names = {
            one["resourceClaimName"]
            for made in self.pods(group)
            for one in (made.get("status") or {}).get("resourceClaimStatuses") or ()
        }
        every = self.bed.items("resourceclaims", "-n", self.namespace)
        return [one for one in every if one["metadata"]["name"] in names]

    def gang(self, name: str) -> Object | None:
        return self.bed.get("gang", name, self.namespace)

    def reaches(self, name: str, *phases: str) -> Object:
        """The Gang, once it is in one of these phases."""

        def look() -> Object | None:
            found = self.gang(name)
            reached = found and (found.get("status") or {}).get("phase") in phases
            return found if reached else None

        return until(f"gang {name} is {' or '.join(phases)}", look)

    def waits(self, name: str, reason: str, *told: str) -> Object:
        """The Gang, once it waits for this reason of its condition Placed, and says these words.

        It waits already before it was planned for the first time, and then does not know why.
        """

        def look() -> Object | None:
            found = self.gang(name) or {}
            status = found.get("status") or {}
            words = "\n".join((status.get("waitingFor") or "", *(status.get("explanation") or ())))
            placed = condition(found, "Placed")
            knows = status.get("phase") == "Waiting" and placed.get("reason") == reason
            return found if knows and all(one in words for one in told) else None

        return until(f"gang {name} waits for {reason}, told {told}", look)

    def running(self, group: str, size: int, *, within: float = PATIENCE) -> list[Object]:
        """The members, once all of them run."""

        def look() -> list[Object] | None:
            found = self.pods(group)
            return found if len(found) == size and all(map(is_running, found)) else None

        return until(f"{size} members of {group} run", look, within=within)

    def rules(self) -> list[str]:
        """The DeviceTaintRules of the controller."""
        found = self.bed.items("devicetaintrules")
        return [one["metadata"]["name"] for one in found if is_ours(one)]

    def ends(self, name: str) -> None:
        """Deletes a Job; afterwards nothing of its gang is left."""
        self.bed.kubectl("delete", "job", "-n", self.namespace, name, "--wait=false")
        self.left_nothing(name)

    def left_nothing(self, name: str) -> None:
        """Neither pods nor claims nor rules of this gang are there any more."""
        until(f"pods of gang {name} are gone", lambda: not self.pods(name))
        self.bed.gone("gang", name, self.namespace)
        until("no rule is left", lambda: not self.rules())


def condition(made: Object, kind: str) -> Object:
    """A condition of an object's status; empty where it does not have it."""
    found = (made.get("status") or {}).get("conditions") or ()
    by_kind: dict[str, Object] = {one["type"]: one for one in found}
    return by_kind.get(kind, {})


def is_ours(made: Object) -> bool:
    """Whether the controller made it."""
    labels = made["metadata"].get("labels") or {}
    return bool(labels.get(gang.MADE_BY) == gang.MADE_BY_CONTROLLER)


def is_allocated(claim: Object) -> bool:
    return bool((claim.get("status") or {}).get("allocation"))


def is_gated(made: Object) -> bool:
    gates = made["spec"].get("schedulingGates") or ()
    return any(one["name"] == gang.GATE for one in gates)


def devices(claim: Object) -> Iterator[tuple[str, str]]:
    """Where each device of a claim is, with its driver, and its name."""
    for result in claim["status"]["allocation"]["devices"]["results"]:
        yield f"{result['driver']}/{result['pool']}", result["device"]


def exclusive(claims: Iterable[Object]) -> bool:
    """Whether no device is held by two of these claims."""
    held = [device for claim in claims if is_allocated(claim) for device in devices(claim)]
    return len(held) == len(set(held))


def allocations(claims: Iterable[Object]) -> dict[str, str]:
    """Claim -> its devices as text, to see whether anybody has moved it."""
    return {
        claim["metadata"]["uid"]: json.dumps(sorted(devices(claim)))
        for claim in claims
        if is_allocated(claim)
    }


def steadily(look: Callable[[], bool], until_: Callable[[], bool], what: str) -> None:
    """`look` holds in every sample until `until_` comes true."""

    def both() -> bool:
        assert look(), what
        return until_()

    until(f"{what}, until it is over", both)


def exactly(device_class: str = CLASS, **more: Any) -> Mapping[str, Any]:
    """The body of a request."""
    return {"deviceClassName": device_class, **more}
