"""The settings of `dragoon controller`; see `loading` for where they come from."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from dragoon.api.names import CLASS_GPU, check_driver_name
from dragoon.app import loading
from dragoon.app.config import parse_listen
from dragoon.app.process_config import Listen, ProcessConfig
from dragoon.app.setting import matching
from dragoon.gang.kueue.deciding import Settings as CheckSettings
from dragoon.gang.protocol.model import OnStuck, Settings
from dragoon.gang.waiting.reserving import ReserveSettings

_SUBDOMAIN: Final = "^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"


class ControllerConfig(ProcessConfig, frozen=True, kw_only=True, rename="camel"):
    """The settings of one controller process. Times in seconds."""

    lease_name: Annotated[
        str,
        matching(
            "^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$",
            "a lower-case DNS name of at most 63 characters",
        ),
        Meta(
            description="The Lease by which several controllers agree on one that works.",
        ),
    ] = "dragoon-controller"
    kube_api_qps: Annotated[
        float,
        Meta(ge=1, le=10000, description="Writes to the API server in a second, on average."),
    ] = 200.0
    kube_api_burst: Annotated[
        int, Meta(ge=1, le=100000, description="Writes that may be made at once.")
    ] = 400
    writers: Annotated[
        int, Meta(ge=1, le=1024, description="Requests that are under way at the same time.")
    ] = 32
    scheduler_qps: Annotated[
        float,
        Meta(
            ge=1,
            le=10000,
            description="kube-scheduler's --kube-api-qps: how long its decisions in flight are waited for follows from it.",
        ),
    ] = 50.0
    stuck_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=86400,
            description="For how long kube-scheduler has to call a member unschedulable before anything is done.",
        ),
    ] = 30.0
    repair: Annotated[
        bool,
        Meta(
            description="Evict a member that cannot be bound and that its owner makes again, if there is room elsewhere."
        ),
    ] = True
    on_stuck: Annotated[
        Literal["Wait", "Release"],
        Meta(
            description="What is done with a gang that cannot start: wait and say why, or suspend and resume its Job."
        ),
    ] = "Wait"
    slot_grace_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86400,
            description="How long the devices of a member that died wait for its successor.",
        ),
    ] = 300.0
    reserve_after_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=2592000,
            description="How long a complete gang waits before devices in use are kept for it.",
        ),
    ] = 300.0
    most_reservations: Annotated[
        int,
        Meta(
            ge=0,
            le=64,
            description="For how many gangs devices are kept at one time, the largest ones first; 0 for none.",
        ),
    ] = 1
    kueue: Annotated[
        Literal["auto", "off"],
        Meta(
            description="Answer Kueue's AdmissionChecks of dragoon.dev/placeable where Kueue is there."
        ),
    ] = "auto"
    kueue_promise_seconds: Annotated[
        float,
        Meta(
            ge=1,
            le=86400,
            description="How long devices are kept for a Workload that may start and whose pods have none yet.",
        ),
    ] = 300.0
    kueue_reject_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=2592000,
            description="How long a Workload has to fit nowhere, not even in an empty cluster, before it is rejected.",
        ),
    ] = 600.0
    provisioning_class: Annotated[
        str,
        matching(
            f"^$|{_SUBDOMAIN}",
            "a lower-case DNS subdomain of at most 253 characters, or nothing",
        ),
        Meta(
            description="The class of the ProvisioningRequest for a gang without room whose pods name none; empty: none is made.",
        ),
    ] = ""
    proof_class: Annotated[
        str,
        matching(_SUBDOMAIN, "a lower-case DNS subdomain of at most 253 characters"),
        Meta(
            description="A DeviceClass of this driver, for the proof that claims get a finalizer."
        ),
    ] = CLASS_GPU
    listen: Listen = ":8081"
    pod_namespace: Annotated[
        str,
        matching(
            "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
            "a lower-case DNS label of at most 63 characters",
        ),
        Meta(
            description="This pod's namespace (downward API): the Lease and the proof of the gate are there."
        ),
    ] = "dragoon-system"

    @property
    def protocol(self) -> Settings:
        """The settings of the gang protocol."""
        return Settings(
            qps=self.scheduler_qps,
            stuck_after=self.stuck_seconds,
            repair=self.repair,
            slot_grace=self.slot_grace_seconds,
            on_stuck=OnStuck(self.on_stuck),
        )

    @property
    def checking(self) -> CheckSettings:
        """How Workloads of Kueue are checked."""
        return CheckSettings(
            promise=self.kueue_promise_seconds, reject_after=self.kueue_reject_seconds
        )

    @property
    def reserving(self) -> ReserveSettings:
        """When devices are kept for gangs that wait."""
        return ReserveSettings(self.reserve_after_seconds, self.most_reservations)


SETTINGS: Final = loading.table_of(ControllerConfig)


def load(
    flags: Mapping[str, Any], environment: Mapping[str, str], *, file: str | None = None
) -> ControllerConfig:
    """The settings of the controller from all sources; see `loading.load`. Raises ConfigError."""
    config = loading.load(ControllerConfig, SETTINGS, flags, environment, file=file)
    check_driver_name(config.driver_name)
    parse_listen(config.listen)
    return config


def reference() -> str:
    """The controller's part of docs/configuration.md, made from the table."""
    lines = ["", "## Controller", "", "`dragoon controller` takes these in the same way:", ""]
    return "\n".join([*lines, *loading.table_lines(SETTINGS.values())]) + "\n"
