"""This node as a snapshot of a cluster: what it would publish, and what its journal says.

Needs neither the API server nor a plugin that runs. So one code tells how a node and how a cluster
stand.
"""

from collections.abc import Iterator
from typing import Any

from dragoon.app import hardware, node_claims, publishing
from dragoon.app.config import PluginConfig
from dragoon.diagnose.manifests import Raw
from dragoon.diagnose.snapshot import ClusterSnapshot
from dragoon.errors import DragoonError
from dragoon.kube.port import CLAIMS, CLASSES, NODES, PODS
from dragoon.prepare.journal import Entry


def look(config: PluginConfig, silent: str = "") -> ClusterSnapshot:
    """The node as it is now. Blocks. What cannot be read is named in `missing`.

    silent: why the driver is not asked, empty where it is.
    """
    node = hardware.node_name(config)
    missing = [f"{one.plural}: not asked for, this is one node" for one in (CLASSES, PODS)]
    objects: list[Raw] = [
        {"apiVersion": NODES.api_version, "kind": NODES.kind, "metadata": {"name": node}}
    ]
    if silent:
        missing.append(f"GPUs: {silent}")
    else:
        try:
            objects += published(config, node)
        except DragoonError as error:
            missing.append(f"GPUs: {error.message}")
    try:
        journal = node_claims.contents(config)
    except DragoonError as error:
        missing.append(f"journal: {error.message}")
    else:
        objects += [_claim(entry, config.driver_name, node) for entry in journal.held]
        missing += node_claims.problems(journal)
    found = ClusterSnapshot.of(objects, source=f"node {node}")
    return found.replacing(missing=tuple(missing))


def published(config: PluginConfig, node: str) -> Iterator[Raw]:
    """The slices that this node would publish under such a name. Blocks. Raises DragoonError."""
    found = publishing.look_at_forms(config).as_slices(node, config.driver_name)
    for number, one in enumerate(found):
        # Names as those that the API server gives.
        yield {**one, "metadata": {"name": f"{node}-{number}"}}


def _claim(entry: Entry, driver: str, node: str) -> Raw:
    """The claim with the allocation that was prepared."""
    results = []
    for held in entry.devices:
        result: dict[str, Any] = {
            "request": held.request,
            "driver": driver,
            "pool": held.pool,
            "device": held.device,
        }
        if held.share_id:
            result["shareID"] = held.share_id
        if held.admin_access:
            result["adminAccess"] = True
        if held.share is not None:
            result["consumedCapacity"] = {"memory": str(held.share.memory)}
        results.append(result)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"namespace": entry.namespace, "name": entry.name, "uid": entry.uid},
        "spec": {"devices": {"requests": []}},
        "status": {
            "allocation": {
                "devices": {"results": results},
                "nodeSelector": {"nodeSelectorTerms": [term]},
            }
        },
    }
