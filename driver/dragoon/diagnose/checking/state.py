"""Checks of what was given to claims: on the node, in the cluster, and one against the other."""

from collections.abc import Iterator
from typing import Final

from dragoon.allocator.contention import contentions
from dragoon.api import device_status
from dragoon.diagnose import installed
from dragoon.diagnose.checking.evidence import Evidence, Problem, Rule, known
from dragoon.diagnose.cluster import Cluster, results
from dragoon.diagnose.codes import Check
from dragoon.diagnose.manifests import Raw, mapping, text
from dragoon.diagnose.snapshot import identity


def _damaged(evidence: Evidence) -> Iterator[Problem]:
    journal = known(evidence.journal)
    for one in journal.broken:
        yield Problem(f"journal of claim {one.uid}", one.reason, "dragoon cdi show --all")
    for uid in sorted(journal.set_aside & journal.unreadable):
        yield Problem(f"journal of claim {uid}", "was set aside", "dragoon cdi show --all")


def _newer(evidence: Evidence) -> Iterator[Problem]:
    for one in known(evidence.journal).foreign:
        yield Problem(f"claim {one.entry.claim}", one.reason, "dragoon version")


def _spec_gone(evidence: Evidence) -> Iterator[Problem]:
    for one in known(evidence.specs):
        if one.state != "as written":
            after = f"dragoon cdi show claim/{one.claim.rpartition('/')[2]}"
            yield Problem(f"claim {one.claim}", f"its CDI spec {one.path} is {one.state}", after)


def _stale_spec(evidence: Evidence) -> Iterator[Problem]:
    folder, journal = known(evidence.cdi), known(evidence.journal)
    there = {one.uid for one in journal.held} | journal.unreadable
    for uid, name in sorted(folder.ours.items()):
        if uid not in there:
            yield Problem(
                str(folder.path / name),
                f"claim {uid} is not prepared here",
                f"rm {folder.path / name}",
            )


def _foreign_instance(evidence: Evidence) -> Iterator[Problem]:
    for one in known(evidence.partitions):
        if not one.claim:
            yield Problem(f"MIG instance {one.device}", "no claim has it", "dragoon mig")


def _instance_gone(evidence: Evidence) -> Iterator[Problem]:
    there = {one.uuid for one in known(evidence.partitions)}
    boot = known(evidence.boot_id)
    for entry in known(evidence.journal).held:
        # Instances of an earlier boot are gone with it; the kubelet asks again (case C20).
        for held in entry.devices if entry.answered_in(boot) else ():
            if held.mig is not None and held.mig.uuid not in there:
                yield Problem(
                    f"claim {entry.namespace}/{entry.name}",
                    f"its MIG instance {held.device} is not on the card",
                    "dragoon mig",
                )


def _orphan(evidence: Evidence) -> Iterator[Problem]:
    journal, snapshot = known(evidence.journal), known(evidence.cluster)
    living = {_uid(one) for one in snapshot.claims}
    for entry in journal.held:
        if entry.uid not in living:
            yield Problem(
                f"claim {entry.namespace}/{entry.name}",
                "is prepared on this node and not in the cluster",
                f"dragoon cdi show {entry.uid}",
            )


def _given_twice(evidence: Evidence) -> Iterator[Problem]:
    view = Cluster(known(evidence.cluster)).view
    for one in contentions(view, view.usage):
        claims = " and ".join(one.claims)
        namespace, _, name = one.claims[0].partition("/")
        yield Problem(
            f"{one.pool} {one.what}",
            f"is held by {claims}",
            f"dragoon explain claim/{name} -n {namespace}",
        )


def _not_published(evidence: Evidence) -> Iterator[Problem]:
    snapshot = known(evidence.cluster)
    published = {
        (one.pool, one.name) for one in installed.devices_of(snapshot, evidence.driver_name)
    }
    for claim in snapshot.claims:
        for result in results(claim):
            device = text(result.get("pool")), text(result.get("device"))
            if result.get("driver") == evidence.driver_name and device not in published:
                yield Problem(
                    f"claim {installed.full_name(claim)}",
                    f"has {'/'.join(device)}, which no slice has",
                    _explain(claim),
                )


def _refused(evidence: Evidence) -> Iterator[Problem]:
    for claim in known(evidence.cluster).claims:
        for one in device_status.refusals(claim, evidence.driver_name):
            yield Problem(
                f"claim {installed.full_name(claim)}",
                f"{one.device} is not prepared ({one.code}): {one.message}",
                _explain(claim),
            )


def _uid(raw: Raw) -> str:
    return text(mapping(raw.get("metadata")).get("uid"))


def _explain(claim: Raw) -> str:
    namespace, name = identity(claim)
    return f"dragoon explain claim/{name} -n {namespace}"


RULES: Final = (
    Rule(
        Check(
            "STATE001",
            "error",
            "A journal entry cannot be read",
            "What that claim holds is known only from its CDI spec; nothing is given away over it.",
            "Nothing: the plugin keeps the file and prepares the claim anew when the kubelet asks. "
            "If files break again, look at the disk.",
        ),
        _damaged,
    ),
    Rule(
        Check(
            "STATE002",
            "warning",
            "A claim was prepared by a newer version",
            "This version guards its devices and cannot take them back.",
            "Run the newer plugin until the claims of this node have ended.",
        ),
        _newer,
    ),
    Rule(
        Check(
            "STATE003",
            "error",
            "The CDI spec of a prepared claim is missing or changed",
            "Containers of the claim that start now fail, or get something else.",
            "The plugin writes it again within a second: if this stays, it does not run.",
        ),
        _spec_gone,
    ),
    Rule(
        Check(
            "STATE004",
            "warning",
            "A CDI spec of a claim that is not prepared here",
            "It is stale: whoever names its id gets devices that may be somebody else's.",
            "The plugin removes it at its next look; remove it by hand where no plugin runs.",
        ),
        _stale_spec,
    ),
    Rule(
        Check(
            "STATE005",
            "warning",
            "A MIG instance that no claim has",
            "Somebody else made it. It is left alone, and its part of the card is not offered.",
            "Remove it with `nvidia-smi mig -dci` and `-dgi` if nobody needs it.",
        ),
        _foreign_instance,
    ),
    Rule(
        Check(
            "STATE006",
            "error",
            "The MIG instance of a claim is gone",
            "Containers of the claim have no GPU any more.",
            "Delete the pod: a new claim gets a new instance.",
        ),
        _instance_gone,
    ),
    Rule(
        Check(
            "STATE007",
            "warning",
            "A claim is prepared here and not in the cluster",
            "Its devices are guarded against other claims on this node.",
            "The plugin takes it back once its containers have ended: if this stays, it does not "
            "run, or its pod does.",
        ),
        _orphan,
    ),
    Rule(
        Check(
            "STATE008",
            "error",
            "A device was given to two claims",
            "Only one of them is prepared; the other's pod waits. The scheduler's memory of the "
            "device is wrong until it restarts.",
            "Run a controller: it keeps the pool closed and evicts the loser. Without one, delete the "
            "younger claim's pod.",
        ),
        _given_twice,
    ),
    Rule(
        Check(
            "STATE009",
            "warning",
            "A claim has a device that is not published",
            "Its pod cannot be started again on that node.",
            "Delete the pod and its claim, or bring the node's plugin back.",
        ),
        _not_published,
    ),
    Rule(
        Check(
            "STATE010",
            "error",
            "A node refuses to prepare a claim",
            "Its pod waits in ContainerCreating.",
            "docs/refusals.md says what each code means and what helps.",
        ),
        _refused,
    ),
)
