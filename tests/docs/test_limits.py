"""docs/limits.md has the numbers of the code."""

import re
from typing import Final

import pytest

from dragoon.allocator import problem
from dragoon.allocator.gang import terrain
from dragoon.api import forms, gang, limits
from dragoon.cel import frame, parser
from dragoon.diagnose import archive, documents
from dragoon.gang.provisioning import objects
from dragoon.gpu.sim import schema
from dragoon.kubelet import healthstream, sockets
from dragoon.prepare.enforcement import region
from dragoon.reading import LARGEST
from tests.docs.blocks import ROOT

_MIB: Final = 2**20
NUMBERS: Final = {
    "devices of one claim": (problem.MAX_DEVICES,),
    "text of a selector": (parser.MAX_LENGTH,),
    "cost of a selector on one device": (frame.COST_LIMIT,),
    "smallest share": (forms.SMALLEST_SHARE // _MIB,),
    "GPUs with a share of the tier `hami` in one container": (region.MAX_DEVICES,),
    "members": (gang.MOST_MEMBERS,),
    "name": (limits.LABEL_BYTES,),
    "nodes times values, over the levels of its topology that are device attributes": (
        terrain.MOST_BINS,
    ),
    "different pods in a request to an autoscaler": (objects.MOST_SHAPES,),
    "devices in one slice": (limits.DEVICES_PER_SLICE, limits.DEVICES_PER_DETAILED_SLICE),
    "devices of a node in the health of pods": (healthstream.MOST_DEVICES,),
    "characters of the driver's name": (limits.DRIVER_NAME_BYTES,),
    "characters of a path to a socket": (sockets.PATH_LIMIT,),
    "GPUs of a simulated machine": (schema.MAX_GPUS,),
    "a config file, a kubeconfig, a file of manifests, a topology file": (LARGEST // _MIB,),
    "one file of a saved cluster": (documents.MAX_SNAPSHOT_BYTES // _MIB,),
    "a dump, unpacked": (archive.MAX_BYTES // _MIB,),
}
KUBERNETES: Final = {
    "alternatives of a request (`firstAvailable`)": "8",
    "pods that use one claim": "256",
}
"""Of resource.k8s.io/v1; tests of the allocator and of the planner try them."""


def rows() -> dict[str, str]:
    page = (ROOT / "docs/limits.md").read_text("utf-8")
    found = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", page, re.MULTILINE)
    return {what: limit for what, limit in found if what not in {"what", "---"}}


def test_every_limit_of_the_page_is_known_here() -> None:
    assert rows().keys() == NUMBERS.keys() | KUBERNETES.keys()


@pytest.mark.parametrize("what", NUMBERS)
def test_a_limit_of_the_page_is_that_of_the_code(what: str) -> None:
    assert tuple(map(int, re.findall(r"\d+", rows()[what]))) == NUMBERS[what]
