"""What the cluster needs from Debian: find what is missing, say or run the command for it."""

import os
import shutil
import subprocess
from pathlib import Path

from realcluster.failure import ClusterError

# Debian's runc is built with seccomp, which the kubelet's default profile needs; one built from
# its Go module without libseccomp's headers is not.
_NEEDED = {
    "runc": ("runc",),
    "containernetworking-plugins": ("/usr/lib/cni/ptp", "/usr/lib/cni/host-local"),
    "busybox-static": ("/bin/busybox",),
    "iptables": ("iptables",),
    "iproute2": ("ip",),
    "openssl": ("openssl",),
    "mount": ("umount",),
}
# Not PATH: in some shells root's lacks the sbin folders, where iptables and runc are.
_SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(program: str) -> str | None:
    """The path of an installed program."""
    return shutil.which(program, path=_SEARCH)


def missing() -> list[str]:
    """The packages that are not installed."""
    return [name for name, files in _NEEDED.items() if not all(map(_present, files))]


def require(*, install: bool) -> None:
    """Fail with the exact command for what is missing, or run it where `install` is set."""
    absent = missing()
    if not absent:
        return
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *absent]
    if not install:
        raise ClusterError(
            f"missing: {', '.join(absent)}; run `{' '.join(command)}` or add --install"
        )
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["apt-get", "update", "--quiet"], command):
        done = subprocess.run(step, env=environment, check=False)
        if done.returncode:
            raise ClusterError(f"`{' '.join(step)}` failed with exit code {done.returncode}")
    still = missing()
    if still:
        raise ClusterError(f"installed, but still not found: {', '.join(still)}")


def require_root() -> None:
    """Kubelets mount and containerd makes namespaces: as another user nothing of it works."""
    if os.geteuid() != 0:
        raise ClusterError("the cluster's kubelets and containers need root: run it as root")


def _present(program: str) -> bool:
    return Path(program).exists() if program.startswith("/") else find(program) is not None
