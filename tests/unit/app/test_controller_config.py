import pytest

from dragoon.app import controller_config
from dragoon.cli import main
from dragoon.errors import ConfigError
from dragoon.gang.protocol.model import OnStuck, Settings


def test_the_defaults_are_the_protocols() -> None:
    assert controller_config.load({}, {}).protocol == Settings()


def test_settings_reach_the_protocol() -> None:
    flags = {"scheduler_qps": "1000", "on_stuck": "Release", "repair": "false"}
    found = controller_config.load(flags, {"DRAGOON_STUCK_SECONDS": "5"}).protocol
    assert (found.qps, found.on_stuck, found.repair) == (1000, OnStuck.RELEASE, False)
    assert found.stuck_after == 5


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        (
            "kube_api_qps",
            "0",
            "flag --kube-api-qps: found '0', allowed is a number from 1 to 10000",
        ),
        ("writers", "1.5", "flag --writers: found '1.5', allowed is a whole number from 1 to 1024"),
        ("on_stuck", "Kill", "allowed is one of Release, Wait"),
        ("lease_name", "Bad Name", "found 'Bad Name', allowed is a lower-case DNS name of at most"),
        ("pod_namespace", "a/b", "flag --pod-namespace: found 'a/b', allowed is a lower-case DNS"),
        ("pod_namespace", "", "flag --pod-namespace: found '', allowed is a lower-case DNS label"),
        ("proof_class", "", "flag --proof-class: found '', allowed is a lower-case DNS subdomain"),
        ("provisioning_class", "a b", "flag --provisioning-class: found 'a b', allowed is a lower"),
        ("listen", "nowhere", "listen: found 'nowhere'"),
        ("driver_name", "A B", "driver name"),
    ],
)
def test_a_wrong_value_is_told_before_anything_starts(flag: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        controller_config.load({flag: value}, {})


def test_the_command_ends_with_the_code_for_wrong_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["controller", "--kube-api-burst", "many"]) == 2
    assert "--kube-api-burst: found 'many'" in capsys.readouterr().err
