"""The Node that this process runs on, as far as publishing depends on it.

A watch of this one object says at once when something of it changed: a label, its UID. Decisions
are made on what was read past every cache, never on a copy that may lag.
"""

from collections.abc import Callable
from typing import Final

from dragoon.kube.backoff import Backoff
from dragoon.kube.informer import Informer
from dragoon.kube.mirror import Change
from dragoon.kube.port import NODES, Api, Object
from dragoon.publish import owners, slices

_OUR_LABELS: Final = "dragoon.dev/"


class OwnNode:
    """Follows one Node. All methods belong to the loop that runs run().

    It is shown as a Node with what counts only: name, UID, our labels, and the resources of device
    plugins in `status.allocatable`. A kubelet writes its status every few minutes: nobody is told.
    """

    def __init__(self, api: Api, name: str, *, backoff: Backoff | None = None) -> None:
        """backoff: of the watch. Raises ConfigError for a name that no Node can have."""
        self.name = slices.check_node_name(name)
        self._api = api
        self._followers: list[Callable[[Object], None]] = []
        self._informer: Informer[Object] = Informer(
            api,
            NODES,
            fields={"metadata.name": name},
            decode=_what_counts,
            backoff=backoff or Backoff(first=0.5, limit=15.0),
        )
        self._informer.subscribe(self._noticed)

    @property
    def current(self) -> Object | None:
        """As it was seen last; None before that, and where there is none."""
        return self._informer.get(self.name)

    def follow(self, callback: Callable[[Object], None]) -> None:
        """Calls back with the Node when it is seen first, anew or changed; it may not block or raise."""
        self._followers.append(callback)

    async def read(self) -> Object:
        """As it is now; the followers are told first. Raises what the API raises."""
        found = await self._api.get(NODES, self.name)
        self._informer.observe(found)
        return _what_counts(found)

    async def run(self) -> None:
        """Follows the watch until cancelled. Errors of the API are waited out."""
        await self._informer.run()

    def _noticed(self, change: Change[Object]) -> None:
        if change.new is not None and change.new != change.old:
            for callback in self._followers:
                callback(change.new)


def _what_counts(node: Object) -> Object:
    metadata = node["metadata"]
    labels = metadata.get("labels") or {}
    return {
        "apiVersion": NODES.api_version,
        "kind": NODES.kind,
        "metadata": {
            "name": metadata["name"],
            "uid": metadata["uid"],
            "labels": {key: value for key, value in labels.items() if key.startswith(_OUR_LABELS)},
        },
        "status": {"allocatable": dict(owners.plugin_resources(node))},
    }
