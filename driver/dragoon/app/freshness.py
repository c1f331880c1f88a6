"""How new the inventory is that a prepare is planned with.

A look asks every card many questions; done for each of many pods that start together, it would
cost more than all the rest of prepare. So a look that is a few seconds old is good enough. And a
card that hangs the driver must not cost the others their pods: then the last inventory is taken.
"""

import asyncio
from typing import Final

from dragoon.errors import HardwareError
from dragoon.gpu.model import Inventory
from dragoon.gpu.watching import InventoryWatch

FRESH_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 2.0
FIRST_PATIENCE_SECONDS: Final = 10.0


class FreshInventory:
    """The inventory of a watch, at most `fresh` seconds old unless the driver hangs.

    patience: seconds for a look where an older inventory will do; first_patience: where none will.
    """

    def __init__(
        self,
        watch: InventoryWatch,
        *,
        fresh: float = FRESH_SECONDS,
        patience: float = PATIENCE_SECONDS,
        first_patience: float = FIRST_PATIENCE_SECONDS,
    ) -> None:
        self._watch = watch
        self._fresh = fresh
        self._patience = patience
        self._first_patience = first_patience
        self._valid_until = 0.0

    async def __call__(self) -> Inventory:
        """What is on this node now.

        Raises what a look raises: an error that the driver answers is not passed over; and a
        retryable HardwareError where it has not answered yet.
        """
        now = asyncio.get_running_loop().time()
        known = self._watch.current
        if known is not None and now < self._valid_until:
            return known
        try:
            async with asyncio.timeout(self._first_patience if known is None else self._patience):
                found = await self._watch.look()
        except TimeoutError as error:
            if known is not None:
                return known
            raise HardwareError(
                "the NVIDIA driver does not answer",
                hint="look for hung GPUs in the kernel log",
                retryable=True,
            ) from error
        self._valid_until = now + self._fresh
        return found
