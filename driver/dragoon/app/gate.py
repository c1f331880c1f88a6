"""Whether pods of gangs are held, as a controller knows it from its proofs."""

from typing import Final

import structlog

from dragoon.errors import DragoonError
from dragoon.gang.admission import Proof, demand_gate
from dragoon.kube.port import Api

_log = structlog.get_logger(__name__)

_AGAIN_S: Final = 2.0
_EVERY_S: Final = 60.0


class Gate:
    """problem: why it is not proved that they are, empty where it is. proof: the last one."""

    def __init__(self, api: Api, namespace: str, device_class: str) -> None:
        """As in `gang.admission.prove`."""
        self._api = api
        self._namespace = namespace
        self._device_class = device_class
        self.problem = "the gate of gangs has not been proved yet"
        self.proof: Proof | None = None

    async def prove(self) -> float:
        """Asks the API server; answers the seconds until it has to be proved again."""
        try:
            self.proof = await demand_gate(self._api, self._namespace, self._device_class)
        except DragoonError as error:
            if self.problem != str(error):
                _log.error("the gate is not proved", code=error.code, error=str(error))
            self.problem = str(error)
            return _AGAIN_S
        if self.problem:
            _log.info("the gate holds", finalizer_by_policy=self.proof.finalizer)
        self.problem = ""
        return _EVERY_S
