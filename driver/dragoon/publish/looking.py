"""One look at everything outside that an offer depends on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import structlog

from dragoon.errors import DragoonError
from dragoon.gpu.model import Inventory, PciAddress
from dragoon.gpu.port import MigCards
from dragoon.kube.port import SLICES, Api, Object
from dragoon.publish import holding
from dragoon.publish.card import Division
from dragoon.publish.floor import Floor, floor
from dragoon.publish.holding import Journal, Prepared, nothing_prepared
from dragoon.publish.slices import Pool
from dragoon.publish.surveying import PATIENCE_SECONDS, Surveyor

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a node process can look besides the API server.

    mig: None where cards are never divided; patience: seconds for each of them. journal: what
    prepare holds.
    """

    mig: MigCards | None = None
    journal: Journal = nothing_prepared
    patience: float = PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class Look:
    """What the API server says: the slices of all drivers on the node, and its version."""

    slices: tuple[Object, ...]
    floor: Floor


@dataclass(frozen=True, slots=True)
class Hardware:
    """What cards with MIG say, and what the journal does. unread: cards that could not be asked."""

    divisions: Mapping[PciAddress, Division] = field(default_factory=dict)
    unread: Mapping[PciAddress, str] = field(default_factory=dict)
    prepared: Prepared | None = None


class Looker:
    """Looks for one node. Remembers of a card with MIG what it said last."""

    def __init__(self, api: Api, pool: Pool, sources: Sources) -> None:
        self._api = api
        self._pool = pool
        self._sources = sources
        self._surveyor = Surveyor(sources.mig, sources.patience) if sources.mig else None
        self._known: dict[PciAddress, Division] = {}

    async def at_cluster(self) -> Look:
        """Asks the API server. Raises what the API raises."""
        listing = await self._api.list(SLICES, fields={"spec.nodeName": self._pool.node})
        return Look(listing.items, floor(await self._api.version()))

    async def at_hardware(self, inventory: Inventory, *, mig: bool) -> Hardware:
        """Reads the journal, and with mig asks every card that has MIG.

        The journal is read before and after: an instance is made after it stands there, and
        removed before it goes from there. A card that cannot be asked now is as it was.
        """
        before = await self._sources.journal()
        if not mig or self._surveyor is None:
            return Hardware(prepared=before)
        surveyed = await self._surveyor.survey(inventory)
        after = await self._sources.journal()
        divisions, unread = surveyed.told_apart(
            before.made | after.made if before and after else None
        )
        uuids = {gpu.address: gpu.uuid for gpu in inventory.gpus}
        self._known = divisions | {
            address: division
            for address, division in self._known.items()
            if address in unread and division.card.uuid == uuids[address]
        }
        return Hardware(self._known, unread, after)

    async def holders(self, prepared: Prepared | None) -> Collection[str] | None:
        """Our devices that claims hold here; None where that cannot be found out now."""
        if prepared is None:
            return None
        try:
            found = await holding.allocated(
                self._api, driver=self._pool.driver, pool=self._pool.name, node=self._pool.node
            )
        except DragoonError as error:
            log.warning("not known which devices are allocated", error=str(error))
            return None
        return prepared.devices | found
