"""Of what a claim wishes for: selectors, configs for Dragoon, capacities."""

from typing import Final

from dragoon.diagnose.codes import Check

CHECKS: Final = (
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
        "DRG414",
        "error",
        "The API server refuses the selector as too expensive",
        "It estimates the worst case before it stores the object. Of a text out of `orValue` it does "
        "not know how long it may be.",
        "Test with `in` that the attribute is there, then read it without `?`.",
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
