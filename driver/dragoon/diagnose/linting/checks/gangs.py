"""Of what makes pods a gang."""

from typing import Final

from dragoon.diagnose.codes import Check

CHECKS: Final = (
    Check(
        "DRG701",
        "error",
        "A gang with a name that it cannot have",
        "The value of the label names the Gang. Its pods are held at their gate and never placed.",
        "Write a lower-case DNS name of at most 63 characters.",
    ),
    Check(
        "DRG702",
        "error",
        "An annotation of a gang with a value that is not allowed",
        "The gang is Invalid, and its pods are never placed; or the API refuses the object, for "
        "labels and annotations are text, and YAML takes 4 for a number.",
        'Write what the message allows, a number in quotes: "4".',
    ),
    Check(
        "DRG703",
        "warning",
        "A label or an annotation of gangs where nobody reads it",
        "The pods are no gang, or not the one that was meant, and nobody says so: they are placed "
        "one by one.",
        "Write it where the message says, on the pods themselves: in the metadata of their template.",
    ),
)
