"""The claims of the demo, as a user would write them: six lines of YAML each."""

from dataclasses import dataclass
from typing import Any

import yaml

from dragoon import quantity

ENOUGH = quantity.parse("40Gi")
"""What the first claim asks for."""


@dataclass(frozen=True, slots=True)
class Request:
    """A claim as text, and what it asks in words."""

    words: str
    text: str

    @property
    def claim(self) -> dict[str, Any]:
        """The claim as an object."""
        parsed: dict[str, Any] = yaml.safe_load(self.text)
        return parsed

    @property
    def name(self) -> str:
        """The claim's name."""
        name: str = self.claim["metadata"]["name"]
        return name


def with_memory(driver: str, device_class: str) -> Request:
    """One GPU with at least 40 GiB."""
    return Request(
        f"a GPU with at least {ENOUGH} of memory",
        f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: forty, namespace: default}}
spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: {device_class},
  selectors: [{{cel: {{expression:
    "device.capacity['{driver}'].memory.compareTo(quantity('{ENOUGH}')) >= 0"}}}}]}}}}]}}}}
""",
    )


def linked(name: str, count: int, driver: str, device_class: str) -> Request:
    """`count` GPUs in one NVLink domain."""
    return Request(
        f"{count} GPUs in one NVLink domain",
        f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}, namespace: default}}
spec: {{devices: {{
  requests: [{{name: gpus, exactly: {{deviceClassName: {device_class}, count: {count}}}}}],
  constraints: [{{matchAttribute: {driver}/nvlinkDomain}}]}}}}
""",
    )
