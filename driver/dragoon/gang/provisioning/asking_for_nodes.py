"""Makes ProvisioningRequests for gangs that have no room, and reads what comes of them."""

from collections.abc import Callable, Sequence

import structlog

from dragoon.api.gang import GangObject
from dragoon.errors import ApiConflictError, ApiNotFoundError, DragoonError
from dragoon.gang.group_copies import GroupCopies
from dragoon.gang.pod_index import FamilyKey
from dragoon.gang.provisioning import deciding
from dragoon.gang.provisioning.deciding import Need
from dragoon.gang.provisioning.objects import Request
from dragoon.gang.records import PodRecord, Raw
from dragoon.gang.world import World
from dragoon.kube.mirror import Key
from dragoon.kube.port import POD_TEMPLATES, PROVISIONING_REQUESTS, Api, Resource

_log = structlog.get_logger(__name__)


class Provisioning:
    """What is known of nodes that were asked for. class_name: where pods say nothing; may be empty.

    changed: asks for a look at a family. again: seconds between two looks at what is served.
    """

    def __init__(
        self,
        api: Api,
        world: World,
        *,
        class_name: str,
        changed: Callable[[FamilyKey], None],
        again: float,
    ) -> None:
        self._api = api
        self._world = world
        self._class_name = class_name
        self._changed = changed
        self._failed: dict[str, str] = {}
        self._copies = GroupCopies(api, (PROVISIONING_REQUESTS,), again=again)
        self._copies.subscribe(self._seen)

    async def follow(self) -> None:
        """Follows requests, where the API server has them, until cancelled."""
        await self._copies.run()

    async def settled(self) -> None:
        """Waits until it is known which requests there are."""
        await self._copies.settled()

    def told(
        self, gang: GangObject, pods: Sequence[PodRecord], *, has_no_room: bool
    ) -> tuple[str, str, str] | None:
        """Status, reason and message of a gang's condition, None where nothing is asked for."""
        return deciding.told(self._need(gang, pods, has_no_room=has_no_room))

    async def ask(self, gang: GangObject, pods: Sequence[PodRecord], *, has_no_room: bool) -> bool:
        """Asks for what a gang needs now, once; whether all is as it should be.

        What fails is told in the gang's status, and is to be tried again.
        """
        found = deciding.decide(self._need(gang, pods, has_no_room=has_no_room))
        try:
            for name, uid in found.withdrawn:
                await self._withdraw(gang.namespace, name, uid)
            if found.asking is not None:
                await self._create(gang, found.asking)
        except DragoonError as error:
            self._failed[gang.uid] = str(error)
            _log.warning("nodes not asked for", gang=str(gang), code=error.code, error=str(error))
            return False
        self._failed.pop(gang.uid, None)
        return True

    def forget(self, uid: str) -> None:
        """A Gang is gone."""
        self._failed.pop(uid, None)

    def _need(self, gang: GangObject, pods: Sequence[PodRecord], *, has_no_room: bool) -> Need:
        class_name = deciding.class_of(pods, self._class_name)
        return Need(
            gang,
            pods,
            class_name,
            has_no_room=gang.status.plan is None and has_no_room,
            asked=self._asked(gang) if class_name else (),
            missing=self._copies.missing(PROVISIONING_REQUESTS),
            failed=self._failed.get(gang.uid, ""),
        )

    def _asked(self, gang: GangObject) -> tuple[Raw, ...]:
        informer = self._copies.informers.get(PROVISIONING_REQUESTS)
        found = () if informer is None else informer.values()
        return tuple(one for one in found if _is_owned(one, gang))

    async def _withdraw(self, namespace: str, name: str, uid: str) -> None:
        try:
            await self._api.delete(PROVISIONING_REQUESTS, name, namespace=namespace, uid=uid)
        except ApiNotFoundError:
            return

    async def _create(self, gang: GangObject, request: Request) -> None:
        """Templates first: a request without them fails for good. What is there is the same."""
        for template in request.templates:
            await self._create_once(POD_TEMPLATES, template)
        stored = await self._create_once(PROVISIONING_REQUESTS, request.body)
        informer = self._copies.informers.get(PROVISIONING_REQUESTS)
        if stored is not None and informer is not None:
            informer.observe(dict(stored))
        _log.info("nodes asked for", gang=str(gang), request=request.name)

    async def _create_once(self, resource: Resource, body: Raw) -> Raw | None:
        try:
            return await self._api.create(resource, dict(body))
        except ApiConflictError:
            return None

    def _seen(self, _resource: Resource, key: Key | None) -> None:
        """A request has changed, or the API has come or gone: its gang says so."""
        informer = self._copies.informers.get(PROVISIONING_REQUESTS)
        found = None
        if key is not None and informer is not None:
            found = informer.get(key.name, key.namespace)
        for gang in self._world.copies.gangs.values():
            if found is None or _is_owned(found, gang):
                self._changed(FamilyKey(gang.namespace, gang.group))


def _is_owned(raw: Raw, gang: GangObject) -> bool:
    """Whether a request was made for a gang: of another namespace it says so in vain."""
    meta = raw["metadata"]
    owners = (one.get("uid") for one in meta.get("ownerReferences") or ())
    return meta.get("namespace") == gang.namespace and gang.uid in owners
