"""In which pod and container a process is, by what /proc/<pid>/cgroup says (cgroups(7)). Pure.

Names are those that the kubelet gives to pods, with the systemd driver
(`kubepods-burstable-pod<uid with _>.slice/cri-containerd-<id>.scope`) and with cgroupfs
(`pod<uid>/<id>`). What stands above a pod differs by node (a cgroup root of the kubelet, a cgroup
namespace of the reader, cgroup v1 with a line for each controller): so only the parts are looked
at.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

# The API server makes UUIDs; the UID of a static pod is a hash without dashes.
_UID = r"[0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12}"
_POD = re.compile(rf"(?:(?:.*-)?kubepods(?:-burstable|-besteffort)?-)?pod({_UID})(?:\.slice)?")
_CONTAINER = re.compile(r"(?:[a-z-]+-)?([0-9a-f]{64})(?:\.scope)?")


@dataclass(frozen=True, slots=True)
class PodPlace:
    """A pod by its UID, and a container by the runtime's id, empty where it is in none."""

    pod_uid: str
    container_id: str = ""


def pod_place(cgroup: str) -> PodPlace | None:
    """The pod of a process, from the whole text of its cgroup file; None outside pods."""
    return next(filter(None, map(_in_path, _paths(cgroup))), None)


def _paths(text: str) -> Iterator[PurePosixPath]:
    """Each line is `<hierarchy>:<controllers>:<path>`."""
    for line in text.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            yield PurePosixPath(parts[2])


def _in_path(path: PurePosixPath) -> PodPlace | None:
    for number, part in enumerate(path.parts):
        found = _POD.fullmatch(part)
        if found:
            inside = _CONTAINER.fullmatch("".join(path.parts[number + 1 : number + 2]))
            return PodPlace(_with_dashes(found[1]), inside[1] if inside else "")
    return None


def _with_dashes(uid: str) -> str:
    return uid.replace("_", "-")
