"""The settings of prepare, all in one frozen object."""

from dataclasses import dataclass, field
from pathlib import Path

from dragoon.api.names import check_driver_name
from dragoon.prepare.paths import Paths


@dataclass(frozen=True, slots=True)
class PrepareSettings:
    """How this node prepares claims. Times are seconds.

    state_folder holds journal and markers and must survive a reboot; cdi_folder is read by the
    container runtime and need not. dev_root and driver_root are where this node's `/dev` and the
    driver's files are, seen from the container runtime (not `/` when the driver is containerised).

    wait_s is how long one call waits for another claim, or for the API server: the kubelet cancels
    a call after 45 s and then retries only after 60 to 90 s (kubelet-tried.md section 0, point 1).
    """

    driver: str
    node: str
    state_folder: Path
    cdi_folder: Path
    dev_root: Path = Path("/")
    driver_root: Path = Path("/")
    wait_s: float = 40.0
    reread_s: float = 5.0
    poll_s: float = 0.5
    lock_s: float = 10.0
    api_patience_s: float = 5.0
    hardware_patience_s: float = 10.0
    ending_s: float = 3.0
    watch_s: float = 1.0
    sweep_s: float = 60.0
    paths: Paths = field(init=False)

    def __post_init__(self) -> None:
        check_driver_name(self.driver)
        object.__setattr__(self, "paths", Paths(self.driver, self.state_folder, self.cdi_folder))

    @property
    def pool(self) -> str:
        """The pool of this node's devices (DESIGN section 4)."""
        return f"{self.node}/gpu"

    @property
    def kind(self) -> str:
        """The CDI kind of our specs, `<vendor>/<class>`."""
        return f"{self.driver}/claim"
