"""`dragoon claim new`: what it prints is right, and what cannot be asked for is refused."""

from typing import Any

import pytest
import yaml

from dragoon.cli import main
from dragoon.diagnose.remedies.change import requests

Capture = pytest.CaptureFixture[str]

NVLINK = {"requests": ["gpu"], "matchAttribute": "gpu.dragoon.dev/nvlinkDomain"}
WISHES: list[tuple[str, str, dict[str, Any]]] = [
    ("", "gpu", {"deviceClassName": "gpu.dragoon.dev"}),
    (
        "--gpus 2 --same-nvlink --memory 40Gi",
        "2-gpus",
        {
            "deviceClassName": "gpu.dragoon.dev",
            "count": 2,
            "capacity": {"requests": {"memory": "40Gi"}},
        },
    ),
    (
        "--share 10Gi --cores 25 --name small",
        "small",
        {
            "deviceClassName": "shared.dragoon.dev",
            "capacity": {"requests": {"memory": "10Gi", "cores": "25"}},
        },
    ),
    (
        "--profile 1g.24gb+me --class sim-mig.dragoon.dev",
        "mig-1g24gb-with-me",
        {
            "deviceClassName": "sim-mig.dragoon.dev",
            "selectors": [
                {
                    "cel": {
                        "expression": 'device.attributes["gpu.dragoon.dev"].?profile.orValue("")'
                        ' == "1g.24gb+me"'
                    }
                }
            ],
        },
    ),
]


@pytest.mark.parametrize(("arguments", "name", "request_"), WISHES)
def test_a_wish_becomes_a_template(
    arguments: str, name: str, request_: dict[str, Any], capsys: Capture
) -> None:
    assert main.run(["claim", "new", *arguments.split()]) == 0
    told = capsys.readouterr()
    found = yaml.safe_load(told.out)
    assert (found["kind"], found["metadata"]) == ("ResourceClaimTemplate", {"name": name})
    (one,) = requests(found["spec"])
    assert one.raw == request_
    constraints = found["spec"]["spec"]["devices"].get("constraints", [])
    assert constraints == ([NVLINK] if "--same-nvlink" in arguments else [])
    assert f"resourceClaimTemplateName: {name}}}]" in told.out
    assert told.err.startswith("next: dragoon simulate")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--share 10Gi --profile 1g.10gb", "--profile: found with --share"),
        ("--share 10Gi --memory 10Gi", "--memory: found with --share"),
        ("--share 100Mi", "--share: found 100Mi, allowed is 512Mi and more"),
        ("--memory 40G1", "--memory: "),
        ("--memory -1Gi", "--memory: found -1Gi, allowed is 1 and more"),
        ("--cores 10", "--cores: found without --share"),
        ("--share 1Gi --cores 101", "--cores: found 101, allowed is 1 to 100"),
        ("--share 1Gi --cores 0", "--cores: found 0, allowed is 1 to 100"),
        ("--cores 0", "--cores: found without --share"),
        ("--gpus 0", "--gpus: found 0, allowed is 1 to 32"),
        ("--gpus 33", "--gpus: found 33, allowed is 1 to 32"),
        ("--same-nvlink", "--same-nvlink: found with one GPU"),
        ("--same-nvlink --gpus 2 --profile 1g.10gb", "--same-nvlink: found with a part"),
        ("--profile big", "--profile: MIG profile: found 'big'"),
        ("--share 10_Gi", "--share: quantity: found '10_Gi'"),
        ("--class Bad_Name", "--class: found 'Bad_Name'"),
        ("--name Big_One", "--name: found 'Big_One'"),
        ('--product a"b', "--product: found"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_and_nothing_printed(
    arguments: str, message: str, capsys: Capture
) -> None:
    assert main.run(["claim", "new", *arguments.split()]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert not told.out


def test_what_the_lints_warn_of_is_told_and_printed_all_the_same(capsys: Capture) -> None:
    assert main.run(["claim", "new", "--product", "H200"]) == 0
    told = capsys.readouterr()
    assert yaml.safe_load(told.out)["kind"] == "ResourceClaimTemplate"
    assert "note: DRG409" in told.err
    assert "GH200" in told.err


@pytest.mark.parametrize("option", ["name", "memory", "share", "profile", "product", "class"])
def test_a_variable_of_a_shell_that_is_empty_does_not_ask_for_something_else(
    option: str, capsys: Capture
) -> None:
    assert main.run(["claim", "new", f"--{option}", ""]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert f"--{option}': found nothing" in told.err
