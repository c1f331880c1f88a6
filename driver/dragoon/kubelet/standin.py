"""A stand-in for the kubelet's device side, for the demo and the tests; it starts no containers.

What plugins can see is as in Kubernetes 1.37.2: registration, the call
of the instance that registered last, one prepare per claim and again only for a new sandbox after
a restart, containers started again with the CDI ids of the checkpoint. It counts no pods: whoever
calls it knows when the last pod of a claim has ended.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from dragoon.api.claims import ClaimRef
from dragoon.errors import ApiNotFoundError, KubeletError
from dragoon.kube.port import SLICES, Api
from dragoon.kubelet.checkpoint import Checkpoint
from dragoon.kubelet.client import ClaimAnswer
from dragoon.kubelet.messages import DRA_VERSIONS, NOTIFY_SECONDS, DraVersion
from dragoon.kubelet.pluginwatch import PluginWatch
from dragoon.prepare.port import PreparedDevice


class KubeletStandIn:
    """One node's kubelet below `kubelet_root`. A new object on the same root is a restart.

    versions: the DRA versions it speaks; an old kubelet speaks fewer.
    api, node: with both, the slices of the node are deleted at the start, as the kubelet does.
    notify_seconds: how long a plugin may take to hear that it is registered, before it is not.
    """

    def __init__(
        self,
        kubelet_root: Path,
        *,
        versions: Sequence[DraVersion] = DRA_VERSIONS,
        api: Api | None = None,
        node: str = "",
        notify_seconds: float = NOTIFY_SECONDS,
    ) -> None:
        """Raises StateError when there is a checkpoint that cannot be read."""
        self._plugins = PluginWatch(
            kubelet_root / "plugins_registry", versions, notify_seconds=notify_seconds
        )
        self._checkpoint = Checkpoint(kubelet_root / "dra_manager_state")
        self._prepared: set[tuple[str, str]] = set()
        self._api = api
        self._node = node

    async def run(self) -> None:
        """Lives until it is cancelled."""
        if self._api is not None:
            await _delete_slices(self._api, self._node)
        await self._plugins.run()

    async def wait_registered(
        self, driver: str, wanted: Callable[[Path], bool] = lambda _service: True
    ) -> None:
        """Returns when an instance of the driver is registered and connected.

        wanted: which service socket the calls have to go to; until they do there may be none.
        """
        await self._plugins.wait_registered(driver, wanted)

    def calls_go_to(self, driver: str) -> Path:
        """The service socket of the instance that would be called now. Raises KubeletError."""
        return self._plugins.pick(driver).endpoint

    async def prepare(
        self, driver: str, claims: Sequence[ClaimRef]
    ) -> dict[str, tuple[PreparedDevice, ...]]:
        """What happens for the claims of a new sandbox: the driver's devices by claim UID.

        The plugin is called once, with those claims that this kubelet has not prepared yet. Raises
        KubeletError when it cannot be called or fails for any claim; the pod does not start then.
        """
        waiting = [claim for claim in claims if (driver, claim.uid) not in self._prepared]
        if waiting:
            client = self._plugins.pick(driver)
            self._refuse_successors(waiting)
            self._checkpoint.record(driver, dict.fromkeys(waiting, ()))
            answers = await client.prepare(waiting)
            _check("NodePrepareResources", waiting, answers)
            self._checkpoint.record(
                driver, {claim: answers[claim.uid].devices for claim in waiting}
            )
            self._prepared.update((driver, claim.uid) for claim in waiting)
        return {claim.uid: self._checkpoint.devices(driver, claim.uid) or () for claim in claims}

    async def unprepare(self, driver: str, claims: Sequence[ClaimRef]) -> None:
        """What happens after the last pod of the claims has ended. Raises as prepare.

        Claims that were never to be prepared here are not the plugin's business.
        """
        known = [
            claim for claim in claims if self._checkpoint.devices(driver, claim.uid) is not None
        ]
        if not known:
            return
        self._prepared.difference_update((driver, claim.uid) for claim in known)
        answers = await self._plugins.pick(driver).unprepare(known)
        _check("NodeUnprepareResources", known, answers)
        self._checkpoint.forget(driver, [claim.uid for claim in known])

    def cdi_ids(self, claim_uid: str, request: str | None = None) -> tuple[str, ...]:
        """What a container gets for a request of a claim, or for all of it; no plugin is asked.

        Empty for a request that does not exist: the kubelet then starts it without devices.
        """
        return self._checkpoint.cdi_ids(claim_uid, request)

    def _refuse_successors(self, claims: Sequence[ClaimRef]) -> None:
        """A claim waits until the one that had its name before is unprepared."""
        for claim in claims:
            previous = self._checkpoint.previous(claim)
            if previous is not None:
                raise KubeletError(f"claim {claim}: {previous} still exists here", retryable=True)


def _check(method: str, claims: Sequence[ClaimRef], answers: Mapping[str, ClaimAnswer]) -> None:
    """What the kubelet demands of an answer: exactly the claims asked for, none with an error."""
    asked = {claim.uid: claim for claim in claims}
    for uid, answer in answers.items():
        if uid not in asked:
            raise KubeletError(f"{method}: answer for claim UID {uid}, which was not asked for")
        if answer.error:
            raise KubeletError(f"{method}: claim {asked[uid]}: {answer.error}", retryable=True)
    skipped = [str(claim) for uid, claim in asked.items() if uid not in answers]
    if skipped:
        raise KubeletError(f"{method}: no answer for {', '.join(skipped)}")


async def _delete_slices(api: Api, node: str) -> None:
    listing = await api.list(SLICES, fields={"spec.nodeName": node})
    for item in listing.items:
        with suppress(ApiNotFoundError):
            await api.delete(SLICES, item["metadata"]["name"])
