"""Hooks that fail a container in which limits would not hold, and where its parts are inside it.

Two, since each sees what the other cannot: createContainer runs on the
host and sees the finished mounts below the bundle; its message reaches the pod's events.
startContainer runs the image's own loader as the container's user. Both have an environment of
their own: one without runs as host root with the container's.
"""

from typing import Final

from dragoon.errors import HardwareError
from dragoon.prepare.cdi import Hook

LIBRARY: Final = "/usr/local/vgpu/libvgpu.so"
"""Where the library looks for itself when it hooks dlsym."""
PRELOAD: Final = "/etc/ld.so.preload"
REGION: Final = "/usr/local/dragoon/region/usage"

_LOADERS: Final = {
    "x86_64": "/lib64/ld-linux-x86-64.so.2",
    "aarch64": "/lib/ld-linux-aarch64.so.1",
}
_ENV: Final = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",)
_TIMEOUT_S: Final = 10

SCRIPT: Final = """\
fail() { echo "dragoon: $1" >&2; exit 1; }
state=
while IFS= read -r line || [ -n "$line" ]; do state=$state$line; done
for key in io.kubernetes.cri.sandbox-uid io.kubernetes.pod.uid; do
  uid=${state#*\\"$key\\":}
  [ "$uid" != "$state" ] || continue
  uid=${uid#*\\"}
  [ "${uid%%\\"*}" = "$5" ] || fail "this share of a GPU was made for another pod, $5"
done
bundle=${state#*\\"bundle\\":}
[ "$bundle" != "$state" ] || fail "the container runtime does not say where the bundle is"
bundle=${bundle#*\\"}
root=${bundle%%\\"*}/rootfs
[ -d "$root" ] || fail "no root file system at $root"
[ -s "$root$1" ] || fail "the library that keeps GPU limits is missing: $1"
[ -f "$root$2" ] || fail "the region that holds GPU limits is missing: $2"
[ -f "$root$3" ] || fail "$3 is missing: nothing would load the library that keeps GPU limits"
preloaded=
IFS= read -r preloaded <"$root$3" || [ -n "$preloaded" ]
[ "$preloaded" = "$1" ] || fail "$3 does not name the library that keeps GPU limits"
[ -e "$root$4" ] || [ -L "$root$4" ] || \\
  fail "no glibc loader in this image: $4; GPU limits need an image with glibc"
"""
"""For a POSIX shell on the host. Arguments: library, region, preload file and loader, in the
container, and the UID of the only pod that may use them; containerd and CRI-O tell which one it
is."""


def loader(machine: str) -> str:
    """The loader of glibc in an image for such a machine.

    Raises HardwareError for an unknown one.
    """
    try:
        return _LOADERS[machine]
    except KeyError:
        raise HardwareError(
            f"machine {machine}: found no glibc loader that is known, allowed are "
            f"{', '.join(_LOADERS)}"
        ) from None


def hooks(glibc_loader: str, pod_uid: str) -> tuple[Hook, ...]:
    """The hooks of a container with limits, in a pod."""
    return (
        Hook(
            "createContainer",
            "/bin/sh",
            ("sh", "-c", SCRIPT, "dragoon", LIBRARY, REGION, PRELOAD, glibc_loader, pod_uid),
            _ENV,
            _TIMEOUT_S,
        ),
        Hook(
            "startContainer",
            glibc_loader,
            ("ld.so", "--list", LIBRARY),
            _ENV,
            _TIMEOUT_S,
        ),
    )
