"""Random nodes: cards that work, cards that are lost, cards that lie."""

from hypothesis import strategies as st

from dragoon.gpu.model import (
    Fabric,
    FabricState,
    Gpu,
    Inventory,
    LinkRemote,
    LostGpu,
    MigMode,
    NvLink,
    PciAddress,
)

# Long enough, strange enough: lengths are what the API checks.
texts = st.sampled_from(["", "NVIDIA H100", "ü" * 32, "x" * 64, "x" * 65, "ü" * 33, "a\n/b", "0"])
maybe_text = st.none() | texts
# Few addresses, so that cards are linked, collide and come back.
addresses = st.builds(
    PciAddress, st.sampled_from([0, 0xF, 0x10000]), st.integers(0x10, 0x16), st.just(0), st.just(0)
)
pairs = st.tuples(st.integers(0, 99), st.integers(0, 99))
links = st.builds(
    NvLink,
    index=st.integers(0, 17),
    active=st.booleans(),
    remote=st.sampled_from(LinkRemote),
    peer=st.none() | addresses,
    mb_per_second=st.none() | st.integers(0, 10**6),
)
fabrics = st.builds(
    Fabric,
    state=st.sampled_from(FabricState),
    cluster_uuid=maybe_text,
    clique_id=st.none() | st.integers(0, 2**32 - 1),
    reason=texts,
)
gpus = st.builds(
    Gpu,
    address=addresses,
    index=st.integers(0, 20),
    uuid=st.integers(0, 9).map(lambda n: f"GPU-{n}") | texts,
    product=maybe_text,
    brand=maybe_text,
    architecture=maybe_text,
    compute_capability=st.none() | pairs,
    memory_bytes=st.none() | st.integers(-1, 2**63 - 1),
    minor=st.none() | st.integers(0, 20),
    mig=st.none() | st.builds(MigMode, st.booleans(), st.booleans()),
    links=st.lists(links, max_size=6).map(tuple),
    fabric=fabrics,
    numa_node=st.none() | st.integers(-1, 2**64),
    pcie_root=maybe_text,
    problems=st.lists(texts, max_size=2).map(tuple),
)
lost = st.builds(LostGpu, st.none() | addresses, texts, maybe_text)
inventories = st.builds(
    Inventory,
    gpus=st.lists(gpus, max_size=8).map(tuple),
    lost=st.lists(lost, max_size=3).map(tuple),
    driver_version=st.none()
    | st.lists(st.sampled_from(["0", "04", "580", "x"]), max_size=5).map(".".join),
    cuda_version=st.none() | pairs,
    simulated=st.booleans(),
)
