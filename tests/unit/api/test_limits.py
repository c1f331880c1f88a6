"""Names as resource.k8s.io/v1 accepts them."""

import pytest

from dragoon.api import limits

LABEL_63 = "a" * 63


@pytest.mark.parametrize("text", ["gpu-0000-65-00-0", "0", LABEL_63])
def test_a_dns_label(text: str) -> None:
    assert limits.is_dns_label(text)


@pytest.mark.parametrize(
    "text", ["GPU-0", "", "-a", "a-", "a.b", "a_b", LABEL_63 + "a", "a\n", "é"]
)
def test_no_dns_label(text: str) -> None:
    assert not limits.is_dns_label(text)


@pytest.mark.parametrize("text", ["node-a", "10-0-0-1.ec2.internal", "a" * 253])
def test_a_subdomain(text: str) -> None:
    assert limits.is_subdomain(text)


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a.", "Node", "a/b", "a" * 254])
def test_no_subdomain(text: str) -> None:
    assert not limits.is_subdomain(text)


@pytest.mark.parametrize("text", ["node-a/gpu", "a", "a/b/c", "a" * 249 + "/gpu"])
def test_a_pool_name(text: str) -> None:
    assert limits.is_pool_name(text)


@pytest.mark.parametrize("text", ["", "/gpu", "a/", "a//b", "a/B", "a" * 250 + "/gpu"])
def test_no_pool_name(text: str) -> None:
    assert not limits.is_pool_name(text)


@pytest.mark.parametrize(
    "text", ["uuid", "_x", "resource.kubernetes.io/pciBusID", "Gpu.Dragoon.dev/a", "a" * 32]
)
def test_a_qualified_name(text: str) -> None:
    assert limits.is_qualified_name(text)


@pytest.mark.parametrize(
    "text", ["", "a-b", "0a", "/a", "a/", "a/b/c", "a" * 33, "d" * 64 + "/a", "ä", "a b"]
)
def test_no_qualified_name(text: str) -> None:
    assert not limits.is_qualified_name(text)


@pytest.mark.parametrize("text", ["dragoon.dev/lost", "a", "A_b.c-d", "x" * 63])
def test_a_label_key(text: str) -> None:
    assert limits.is_label_key(text)


@pytest.mark.parametrize(
    "text", ["", "dragoon.dev/", "/lost", "a b", "-a", "x" * 64, "A/b", "a/b/c"]
)
def test_no_label_key(text: str) -> None:
    assert not limits.is_label_key(text)


@pytest.mark.parametrize("text", ["00000-gpu.dragoon.dev-node-a-", "a", "a-"])
def test_a_prefix_for_a_generated_name(text: str) -> None:
    assert limits.is_generate_name(text)


@pytest.mark.parametrize("text", ["", "A-", "a..-", "-"])
def test_no_prefix_for_a_generated_name(text: str) -> None:
    assert limits.is_generate_name(text) is (text == "-")
