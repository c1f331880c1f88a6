"""The parts of charts/dragoon/values.schema.json made from the code: the two blocks of settings.

`hack/chart-schema` writes them anew; `--check` only compares.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from dragoon.app.config import PluginConfig
from dragoon.app.controller_config import ControllerConfig

FILE = Path(__file__).resolve().parents[1] / "charts/dragoon/values.schema.json"
BLOCKS: dict[str, type[msgspec.Struct]] = {
    "config": PluginConfig,
    "controllerConfig": ControllerConfig,
}
# What templates set themselves, from values of their own or from the pod.
SET_BY_CHART = frozenset(
    (
        *("driverName", "nodeName", "kubeletRoot", "cdiRoot", "simulate", "simulateState"),
        *("hamiLibrary", "hamiSha256", "hostRoot", "driverRoot", "cgroupRoot", "nvidiaCtk"),
        *("podName", "podNamespace", "podUid", "listen", "kubeconfig"),
        *("procRoot", "sysRoot", "devRoot", "stateDir", "withoutDriver", "kueue"),
    )
)


def block(settings: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of one block: every setting that the chart does not set itself."""
    (described,), components = msgspec.json.schema_components([settings])
    properties = components[described["$ref"].rpartition("/")[2]]["properties"]
    wanted = {name: one for name, one in properties.items() if name not in SET_BY_CHART}
    for one in wanted.values():
        # Values show none: what is not set is left to the process.
        one.pop("default", None)
    return {"type": "object", "additionalProperties": False, "properties": wanted}


def written(text: str) -> str:
    """The schema file with its blocks as the code has them."""
    schema = json.loads(text)
    for name, settings in BLOCKS.items():
        schema["properties"][name] = block(settings)
    return json.dumps(schema, indent=2) + "\n"


def main() -> int:
    """Write the file, or compare; return the exit code."""
    parser = argparse.ArgumentParser(prog="hack/chart-schema", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    before = FILE.read_text("utf-8")
    after = written(before)
    if not parser.parse_args().check:
        FILE.write_text(after, "utf-8")
    elif before != after:
        print(f"{FILE} is not what the settings say: run hack/chart-schema", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
