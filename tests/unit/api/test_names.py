"""The driver's name: every other name derives from it."""

import pytest

from dragoon.api.names import DRIVER_NAME, check_driver_name
from dragoon.errors import ConfigError


@pytest.mark.parametrize("name", [DRIVER_NAME, "a", "a" * 63, "gpu-2.example.com"])
def test_a_driver_name_that_is_allowed_is_returned(name: str) -> None:
    assert check_driver_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "a" * 64, "Gpu.example.com", "gpu..com", "-gpu.com", "gpu-.com", "gpu_x.com", "ü"]
)
def test_a_driver_name_that_is_not_allowed_is_told_with_its_length(name: str) -> None:
    with pytest.raises(ConfigError, match="driver name: found") as refused:
        check_driver_name(name)
    assert f"({len(name)} characters)" in str(refused.value)
    assert "63" in str(refused.value)
