"""The settings of prepare, all in one frozen object."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dragoon.api.names import check_driver_name
from dragoon.prepare.paths import Paths


@dataclass(frozen=True)
class PrepareSettings:
    """How this node prepares claims. Times are seconds.

    state_folder holds journal and markers and must survive a reboot; cdi_folder is read by the
    container runtime and need not. dev_root and driver_root are where this node's `/dev` and the
    driver's files are, seen from the container runtime (not `/` when the driver is containerised);
    cgroup_root is where this process sees the node's cgroup v2 tree, and host_root its root folder.

    wait_s is how long one call waits for another claim, or for the API server: the kubelet cancels
    a call after 45 s and then retries only after 60 to 90 s.
    While it waits, the claim is read again every reread_s and the journal looked at every poll_s.
    lock_s and api_patience_s are how long one try waits for another plugin process, and for an
    answer of the API server. ending_s is how long an unprepare
    waits for the API server to show that the containers have ended. watch_s and sweep_s are the
    pauses between looks at the folders, and between comparisons with the API server; cards_s is how
    long either waits for what the cards say.
    """

    driver: str
    node: str
    state_folder: Path
    cdi_folder: Path
    dev_root: Path = Path("/")
    driver_root: Path = Path("/")
    cgroup_root: Path = Path("/sys/fs/cgroup")
    host_root: Path = Path("/")
    wait_s: float = 40.0
    reread_s: float = 5.0
    poll_s: float = 0.5
    lock_s: float = 10.0
    api_patience_s: float = 5.0
    ending_s: float = 3.0
    watch_s: float = 1.0
    sweep_s: float = 60.0
    cards_s: float = 30.0

    def __post_init__(self) -> None:
        check_driver_name(self.driver)

    @cached_property
    def paths(self) -> Paths:
        """The files of claims."""
        return Paths(self.driver, self.state_folder, self.cdi_folder, self.cgroup_root)

    @property
    def pool(self) -> str:
        """The pool of this node's devices."""
        return f"{self.node}/gpu"

    @property
    def kind(self) -> str:
        """The CDI kind of our specs, `<vendor>/<class>`."""
        return f"{self.driver}/claim"
