"""A cluster in which every GPU is published in three forms, and pods that want them.

The layout of the GPUs is that of a card with seven compute and eight memory parts: whole, shared,
and 14 placements of five MIG profiles, which one counter set of 11 counters keeps apart.
"""

from collections.abc import Iterator
from itertools import cycle, islice

from dragoon.api.names import DRIVER_NAME
from dragoon.kube.port import Object

GPUS = 8
_GPUS_PER_SLICE = 4
_PARTS = 8
PROFILES = {
    "1g.10gb": (1, 1, range(7)),
    "2g.20gb": (2, 2, range(0, 6, 2)),
    "3g.40gb": (3, 4, (0, 4)),
    "4g.40gb": (4, 4, (0,)),
    "7g.80gb": (7, 8, (0,)),
}
"""Per profile: compute parts, memory parts, where it can begin."""

_A = f'device.attributes["{DRIVER_NAME}"]'
_C = f'device.capacity["{DRIVER_NAME}"]'


def nodes(count: int) -> list[Object]:
    return [{"metadata": {"name": f"node-{index:05d}", "labels": {}}} for index in range(count)]


def classes() -> list[Object]:
    """A class for each form."""
    forms = {"gpu": "gpu", "shared": "shared", "mig": "mig"}
    return [
        {
            "metadata": {"name": name},
            "spec": {
                "selectors": [
                    {
                        "cel": {
                            "expression": f'device.driver == "{DRIVER_NAME}" && '
                            f'"{kind}" == {_A}.?type.orValue("")'
                        }
                    }
                ]
            },
        }
        for name, kind in forms.items()
    ]


def slices(node: str, serial: int) -> list[Object]:
    """The slices of one node: counter sets, then devices."""
    groups: list[Object] = [{"sharedCounters": [_counter_set(index) for index in range(GPUS)]}]
    for first in range(0, GPUS, _GPUS_PER_SLICE):
        some = range(first, first + _GPUS_PER_SLICE)
        groups.append({"devices": [one for index in some for one in _devices(index, serial)]})
    return [
        {
            "metadata": {"name": f"{node}-{position}"},
            "spec": {
                "driver": DRIVER_NAME,
                "nodeName": node,
                "pool": {
                    "name": f"{node}/gpu",
                    "generation": 1,
                    "resourceSliceCount": len(groups),
                },
                **group,
            },
        }
        for position, group in enumerate(groups)
    ]


def claims(count: int, *, whole: int) -> list[Object]:
    """Claims of one request each, in a mix of all forms; some want that many whole GPUs."""
    wishes: list[Object] = [
        *({"deviceClassName": "gpu", "count": whole},) * 2,
        *({"deviceClassName": "shared", "capacity": {"requests": {"memory": "20Gi"}}},) * 4,
        *(_mig("1g.10gb"),) * 3,
        _mig("2g.20gb"),
        *(_mig("3g.40gb"),) * 2,
        {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": _LARGE}}], "count": 2},
        {"deviceClassName": "gpu"},
    ]
    return [
        {
            "metadata": {"namespace": "default", "name": f"pod-{i}", "uid": f"uid-{i}"},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "g",
                            "exactly": {"allocationMode": "ExactCount", "count": 1, **wish},
                        }
                    ]
                }
            },
        }
        for i, wish in enumerate(islice(cycle(wishes), count))
    ]


_LARGE = f'{_C}.memory.compareTo(quantity("40Gi")) >= 0'


def _mig(profile: str) -> Object:
    expression = f'{_A}.profile == "{profile}"'
    return {"deviceClassName": "mig", "selectors": [{"cel": {"expression": expression}}]}


def _counter_set(index: int) -> Object:
    counters = {f"memory-{part}": {"value": "1"} for part in range(_PARTS)}
    counters |= {"compute": {"value": "7"}, "copy": {"value": "8"}, "media": {"value": "7"}}
    return {"name": _address(index), "counters": counters}


def _address(index: int) -> str:
    return f"gpu-0000-{0x17 + 0x10 * index:02x}-00-0"


def _devices(index: int, serial: int) -> Iterator[Object]:
    name = _address(index)
    everything = _uses(name, range(_PARTS), 7, 7)
    whole = {"memory": {"value": "80Gi"}}
    yield {
        "name": name,
        "attributes": _attributes(index, serial, "gpu"),
        "capacity": whole,
        "consumesCounters": everything,
    }
    yield {
        "name": f"{name}-shared",
        "allowMultipleAllocations": True,
        "attributes": _attributes(index, serial, "shared"),
        "capacity": _SHARED,
        "consumesCounters": everything,
    }
    for profile, (compute, memory, starts) in PROFILES.items():
        for start in starts:
            attributes = _attributes(index, serial, "mig")
            attributes["profile"] = {"string": profile}
            yield {
                "name": f"{name}-mig-{profile.replace('.', '-')}-{start}",
                "attributes": attributes,
                "capacity": {"memory": {"value": f"{10 * memory}Gi"}},
                "consumesCounters": _uses(name, range(start, start + memory), compute, 1),
            }


_SHARED: Object = {
    "memory": {
        "value": "80Gi",
        "requestPolicy": {"default": "80Gi", "validRange": {"min": "512Mi", "step": "1Mi"}},
    },
    "cores": {
        "value": "100",
        "requestPolicy": {
            "default": "0",
            "validRange": {"min": "0", "max": "100", "step": "1"},
        },
    },
}


def _uses(counter_set: str, parts: range, compute: int, media: int) -> list[Object]:
    counters = {f"memory-{part}": {"value": "1"} for part in parts}
    counters |= {
        "compute": {"value": str(compute)},
        "copy": {"value": str(len(parts))},
        "media": {"value": str(media)},
    }
    return [{"counterSet": counter_set, "counters": counters}]


def _attributes(index: int, serial: int, kind: str) -> Object:
    return {
        "type": {"string": kind},
        "uuid": {"string": f"GPU-{serial:08x}-0000-4000-8000-{index:012x}"},
        "productName": {"string": "NVIDIA H100 80GB HBM3"},
        "brand": {"string": "Nvidia"},
        "architecture": {"string": "Hopper"},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "590.44.1"},
        "cudaDriverVersion": {"version": "13.1.0"},
        "resource.kubernetes.io/pciBusID": {"string": f"0000:{0x17 + 0x10 * index:02x}:00.0"},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{0x10 + 0x10 * index:02x}"},
        "resource.kubernetes.io/numaNode": {"int": index // 4},
    }
