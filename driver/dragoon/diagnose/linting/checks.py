"""The table of all checks: stable codes, what each finds, why it matters, what to do.

docs/checks.md is made from it; a test compares them.
"""

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Check:
    """One check. title: what is found. why: what happens because of it. remedy: what to do."""

    code: str
    severity: Severity
    title: str
    why: str
    remedy: str


_TABLE: Final = (
    Check(
        "DRG001",
        "error",
        "A document is not YAML",
        "kubectl refuses the file.",
        "Correct the line; the other documents of the file are checked all the same.",
    ),
    Check(
        "DRG002",
        "error",
        "A document is not a Kubernetes object",
        "kubectl refuses a file with a document that has no apiVersion or no kind.",
        "Take it out of the file, or add apiVersion and kind.",
    ),
    Check(
        "DRG101",
        "error",
        "The kind exists, in another API group",
        "The API server has no such resource and refuses the object.",
        "Write the apiVersion that the message names.",
    ),
    Check(
        "DRG102",
        "error",
        "The kind exists, but not in this version",
        "The version was never served or has been removed.",
        "Write the version that the message names, in its layout.",
    ),
    Check(
        "DRG103",
        "warning",
        "A version that is not served by default",
        "Kubernetes 1.34 and later serve resource.k8s.io/v1; beta versions only where an "
        "administrator switched them on.",
        "Write the version that the message names, in its layout.",
    ),
    Check(
        "DRG104",
        "error",
        "The API group has no such kind",
        "The API server refuses the object.",
        "Write the kind that the message names.",
    ),
    Check(
        "DRG201",
        "error",
        "The layout of v1beta1 in a later version",
        "Since v1beta2 the fields of a request stand under `exactly`; the API refuses the request "
        "without it.",
        "Put the fields below `exactly`, as the message shows.",
    ),
    Check(
        "DRG202",
        "error",
        "A claim with the double spec of a template",
        "Only a ResourceClaimTemplate has `spec.spec`; the claim asks for nothing.",
        "Take one `spec` away.",
    ),
    Check(
        "DRG203",
        "error",
        "A template without its inner spec",
        "In a ResourceClaimTemplate the claim's spec stands in `spec.spec`.",
        "Add the outer `spec`.",
    ),
    Check(
        "DRG204",
        "error",
        "A field that does not exist",
        "The API refuses it, or drops it and the wish is lost without a word.",
        "Write the field that the message names.",
    ),
    Check(
        "DRG205",
        "error",
        "A value of the wrong type",
        "The API refuses the object.",
        "Write the type that the message names.",
    ),
    Check(
        "DRG206",
        "error",
        "A required field is missing, or two exclude each other",
        "The API refuses the object.",
        "Write exactly one of the fields that the message names.",
    ),
    Check(
        "DRG207",
        "error",
        "A name is there twice",
        "The API refuses the object.",
        "Give each its own name.",
    ),
    Check(
        "DRG208",
        "error",
        "A value that is not allowed",
        "The API refuses the object, or the request can never be met.",
        "Write what the message allows.",
    ),
    Check(
        "DRG209",
        "error",
        "A constraint or a config names a request that the claim does not have",
        "The API refuses the claim.",
        "Write the name that the message suggests.",
    ),
    Check(
        "DRG210",
        "error",
        "A constraint on an attribute that no device of Dragoon has",
        "A device without the attribute is never taken, so the claim is never met.",
        "Write the full name that the message suggests.",
    ),
    Check(
        "DRG301",
        "error",
        "A pod's claim with the removed `source`",
        "The wrapper was removed in Kubernetes 1.31: the pod has no claim, and no GPU.",
        "Write resourceClaimName or resourceClaimTemplateName beside the name.",
    ),
    Check(
        "DRG302",
        "error",
        "A pod's claim needs exactly one of two names",
        "The API refuses a pod whose claim names both an object and a template, or neither.",
        "Write resourceClaimName for a claim that exists, resourceClaimTemplateName for one of "
        "the pod's own.",
    ),
    Check(
        "DRG303",
        "error",
        "A container names a claim that the pod does not have",
        "The API refuses the pod.",
        "Write a name from the pod's resourceClaims.",
    ),
    Check(
        "DRG304",
        "error",
        "A container names a claim twice",
        "The API refuses the pod: a claim, or one of its requests, can be named once.",
        "Name the whole claim once, or put the requests into claims of their own.",
    ),
    Check(
        "DRG305",
        "error",
        "A container names a request that the claim does not have",
        "Kubernetes accepts it, and the container starts without the device and without an error.",
        "Write a name from the claim's requests; alternatives have the name of their parent.",
    ),
    Check(
        "DRG306",
        "error",
        "A claim or template of another namespace",
        "Pods can only use claims and templates of their own namespace; the pod stays Pending.",
        "Make the claim or template in the namespace of the pod.",
    ),
    Check(
        "DRG307",
        "warning",
        "A claim or template that is not there",
        "The pod stays Pending until it is made.",
        "Make it, or write the name that the message suggests.",
    ),
    Check(
        "DRG308",
        "warning",
        "No container uses the claim",
        "The devices are held, and no container sees them.",
        "Name the claim in resources.claims of a container.",
    ),
    Check(
        "DRG309",
        "warning",
        "The DeviceClass is not there",
        "The pod stays Pending until it is made.",
        "Write the name that the message suggests.",
    ),
    Check(
        "DRG401",
        "error",
        "The selector does not compile",
        "The API refuses the object.",
        "Correct the expression at the position that the message names.",
    ),
    Check(
        "DRG402",
        "warning",
        "Dragoon cannot evaluate the selector",
        "The stock scheduler can; gangs, explain and simulate refuse claims with it.",
        "Write the selector with the functions of docs/attributes.md.",
    ),
    Check(
        "DRG403",
        "error",
        "An attribute is read that is a capacity, or the other way round",
        "The read fails, and a read that fails stops the scheduling of the whole pod.",
        "Read it as the message shows.",
    ),
    Check(
        "DRG404",
        "error",
        "A read of something that no device has",
        "A read that fails stops the scheduling of the whole pod, also on other nodes.",
        "Read what the message suggests, or guard the read.",
    ),
    Check(
        "DRG405",
        "error",
        "A read in a wrong domain",
        "Attributes without a domain stand under the name of the driver that publishes them; in "
        "another domain nothing is found, and the read fails.",
        "Write the driver's name.",
    ),
    Check(
        "DRG406",
        "warning",
        "An unguarded read of something that not every device has",
        "The first device without it stops the scheduling of the whole pod, even where another "
        "device would do.",
        "Guard the read as the message shows.",
    ),
    Check(
        "DRG407",
        "error",
        "The selector fails on a device of the cluster",
        "One device on which it fails stops the scheduling of the whole pod.",
        "Guard the read as the message shows.",
    ),
    Check(
        "DRG408",
        "warning",
        "A product name is compared with a short name",
        "The attribute holds the full marketing name, so that the test is never true.",
        "Test for a part of the name as the message shows, or select by capacity.",
    ),
    Check(
        "DRG409",
        "warning",
        "A part of a product name that other products have too",
        "`contains('H200')` also finds GH200, which is another kind of machine.",
        "Match the whole word as the message shows, or select by architecture and capacity.",
    ),
    Check(
        "DRG410",
        "warning",
        "A memory size just above what the cards have",
        "Marketing counts in GB, Kubernetes in Gi, and a part is reserved: an 80 GB card has "
        "79.65 Gi.",
        "Write the size that the message shows; it was tried on the devices of the cluster.",
    ),
    Check(
        "DRG411",
        "warning",
        "A DeviceClass reads attributes without testing the driver first",
        "Selectors are evaluated on devices of every driver; the read fails on the others', and "
        "the pod is not scheduled.",
        "Begin with a test of device.driver.",
    ),
    Check(
        "DRG412",
        "error",
        "The selector runs into the cost limit",
        "An evaluation may take 1,000,000 steps; the scheduler gives up the pod.",
        "Walk over less, and compare single attributes.",
    ),
    Check(
        "DRG413",
        "warning",
        "A test on something that no device has",
        "The read is guarded, so that nothing fails; but the test is never true.",
        "Read what the message suggests.",
    ),
    Check(
        "DRG501",
        "error",
        "A config for Dragoon in a wrong group or version",
        "The claim would be allocated and then refused on the node.",
        "Write the apiVersion that the message names.",
    ),
    Check(
        "DRG502",
        "error",
        "A config for Dragoon of an unknown kind",
        "The claim would be allocated and then refused on the node.",
        "Write one of the kinds that the message names.",
    ),
    Check(
        "DRG503",
        "error",
        "A config for another form of device than the class gives",
        "The claim would be allocated and then refused on the node.",
        "Write the kind that the message names, or limit the config to the right requests.",
    ),
    Check(
        "DRG504",
        "error",
        "A field or a value that the config does not have",
        "The claim would be allocated and then refused on the node: a limit that was misspelt must "
        "not become no limit.",
        "Write a field or value that the message names.",
    ),
    Check(
        "DRG601",
        "error",
        "A capacity that no device of the class has",
        "The device is skipped, so that the claim is never met.",
        "Write the name that the message suggests; up to Kubernetes 1.37 without a domain.",
    ),
    Check(
        "DRG602",
        "error",
        "A share of no compute",
        "`cores: 0` would mean no ceiling; it is refused, because nobody means that.",
        "Leave cores out for no ceiling, or write 1 to 100.",
    ),
)

CHECKS: Final = {check.code: check for check in _TABLE}


def reference() -> str:
    """docs/checks.md, made from the table."""
    lines = [
        "# Checks",
        "",
        "What `dragoon lint` finds. Codes are stable. Only an error makes the command end with 1.",
        "Made from `diagnose/linting/checks.py`; a test compares them.",
        "",
        "| code | severity | finds |",
        "|---|---|---|",
        *(f"| [{c.code}](#{c.code.lower()}) | {c.severity} | {c.title} |" for c in CHECKS.values()),
        "",
    ]
    for check in CHECKS.values():
        lines += [f"## {check.code}", "", f"{check.title} ({check.severity}).", "", check.why, ""]
        lines += [check.remedy, ""]
    return "\n".join(lines)
