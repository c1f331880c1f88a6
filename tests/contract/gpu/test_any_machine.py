"""What holds on every machine: all that ship as simulated ones, and the real one if there is one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoon.errors import DriverMissingError
from dragoon.gpu.model import FabricState, LinkRemote
from dragoon.gpu.naming import find, whole_name
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.opening import open_gpus
from dragoon.gpu.port import Gpus
from dragoon.gpu.sim.profiles import shipped
from dragoon.gpu.topology import link_bandwidth, nvlink_domains, relation

REAL = "the real driver"
UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
ROOT = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")
PROFILE = re.compile(r"[1-9]g\.\d+gb([+-][a-z.]+)*")
RELATION = re.compile(r"NV[1-9]\d?|PIX|PXB|PHB|NODE|SYS")


@pytest.fixture(params=[*shipped(), REAL])
def gpus(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NvmlGpus]:
    if request.param == REAL:
        opened = open_gpus()
        try:
            opened.inventory()
        except DriverMissingError:
            pytest.skip("no NVIDIA driver on this machine")
    else:
        opened = open_gpus(request.param, tmp_path / "machine.json", beside_driver=True)
    yield opened
    opened.close()


def test_the_adapter_is_the_port(gpus: NvmlGpus) -> None:
    port: Gpus = gpus
    assert port.inventory().gpus


def test_looking_again_and_after_closing_finds_the_same(gpus: NvmlGpus) -> None:
    first = gpus.inventory()
    assert gpus.inventory() == first
    gpus.close()
    assert gpus.inventory() == first


def test_cards_have_distinct_identities_in_order_of_address(gpus: NvmlGpus) -> None:
    found = gpus.inventory()
    addresses = [gpu.address for gpu in found.gpus]
    assert addresses == sorted(set(addresses))
    assert len({gpu.uuid for gpu in found.gpus}) == len(found.gpus)
    for gpu in found.gpus:
        assert UUID.fullmatch(gpu.uuid)
        assert LABEL.fullmatch(whole_name(gpu.address))
        assert find(found, whole_name(gpu.address)) is gpu


def test_what_cards_say_of_themselves_is_plausible(gpus: NvmlGpus) -> None:
    found = gpus.inventory()
    assert found.driver_version
    assert found.cuda_version is not None
    for gpu in found.gpus:
        assert gpu.product
        assert gpu.memory_bytes is None or gpu.memory_bytes > 1 << 30
        assert gpu.compute_capability is None or gpu.compute_capability >= (3, 0)
        assert gpu.numa_node is None or gpu.numa_node >= 0
        assert gpu.pcie_root is None or ROOT.fullmatch(gpu.pcie_root)
        assert gpu.pci_path[:1] == (() if gpu.pcie_root is None else (gpu.pcie_root,))


def test_a_cluster_uuid_stands_only_in_a_complete_fabric(gpus: NvmlGpus) -> None:
    for gpu in gpus.inventory().gpus:
        fabric = gpu.fabric
        if fabric.cluster_uuid is not None:
            assert fabric.state is FabricState.COMPLETED
            assert fabric.cluster_uuid.strip("0-")
        assert (fabric.clique_id is None) == (fabric.cluster_uuid is None)


def test_links_are_numbered_and_lead_to_what_they_say(gpus: NvmlGpus) -> None:
    found = gpus.inventory()
    for gpu in found.gpus:
        assert [link.index for link in gpu.links] == sorted({link.index for link in gpu.links})
        for link in gpu.links:
            if link.active and link.remote is LinkRemote.GPU and len(found.gpus) > 1:
                assert link.peer != gpu.address
        speeds = [link.mb_per_second or 0 for link in gpu.links if link.active]
        assert link_bandwidth(gpu) in {None, sum(speeds) // 1000}


def test_members_of_a_domain_are_related_by_nvlink(gpus: NvmlGpus) -> None:
    found = gpus.inventory().gpus
    by_address = {gpu.address: gpu for gpu in found}
    seen = [member for domain in nvlink_domains(found) for member in domain]
    assert len(seen) == len(set(seen))
    for a in found:
        for b in found:
            if a is not b:
                word = relation(a, b, found)
                assert word is None or RELATION.fullmatch(word)
                assert word == relation(b, a, found)
    for domain in nvlink_domains(found):
        for member in domain[1:]:
            word = relation(by_address[domain[0]], by_address[member], found)
            assert word is not None
            assert word.startswith("NV")


def test_mig_profiles_belong_to_cards_that_have_mig(gpus: NvmlGpus) -> None:
    survey = gpus.survey()
    for gpu in survey.inventory.gpus:
        profiles = survey.mig_profiles[gpu.address]
        assert bool(profiles) == (gpu.mig is not None)
        for profile in profiles:
            assert PROFILE.fullmatch(profile.name)
            assert profile.starts
            assert profile.size >= 1
            assert 1 <= profile.instances <= len(profile.starts)
