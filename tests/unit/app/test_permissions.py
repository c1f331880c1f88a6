import pytest
import yaml

from dragoon.app import permissions
from dragoon.cli import main
from dragoon.errors import ConfigError


def test_no_rule_has_a_wildcard_or_lets_anyone_write_claims_pods_or_nodes() -> None:
    for rule in (*permissions.PLUGIN_RULES, *permissions.KUBELET_RULES):
        assert "*" not in (rule.resource.group, rule.resource.plural, *rule.verbs)
        if rule.target in {"resourceclaims", "pods", "nodes"}:
            assert set(rule.verbs) <= {"get", "list", "watch"}


def test_of_a_claims_status_only_entries_of_this_driver_on_the_own_node_may_be_written() -> None:
    (role, *_) = permissions.objects("gpu.example.com", service_account="sa", namespace="ns")
    by_target = {rule["resources"][0]: rule for rule in role["rules"]}
    assert by_target["resourceclaims/status"]["verbs"] == ["patch"]
    driver = by_target["resourceclaims/driver"]
    assert driver["resourceNames"] == ["gpu.example.com"]
    assert driver["verbs"] == ["associated-node:patch"]
    assert not any("arbitrary-node" in verb for rule in role["rules"] for verb in rule["verbs"])


def test_every_role_is_bound_to_whom_it_is_for() -> None:
    found = permissions.objects("gpu.example.com", service_account="sa", namespace="ns")
    by_kind: dict[str, dict[str, dict[str, object]]] = {}
    for item in found:
        by_kind.setdefault(item["kind"], {})[item["metadata"]["name"]] = item
    assert by_kind["ClusterRole"].keys() == by_kind["ClusterRoleBinding"].keys()
    plugin = by_kind["ClusterRoleBinding"]["gpu.example.com:plugin"]
    assert plugin["subjects"] == [{"kind": "ServiceAccount", "name": "sa", "namespace": "ns"}]
    kubelets = by_kind["ClusterRoleBinding"]["gpu.example.com:kubelets-read-claims"]
    assert kubelets["subjects"] == [
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:nodes"}
    ]


def test_that_kubelets_may_read_claims_can_be_left_out() -> None:
    found = permissions.objects(
        "gpu.example.com", service_account="sa", namespace="ns", kubelets_read_claims=False
    )
    assert {item["metadata"]["name"] for item in found} == {"gpu.example.com:plugin"}


def test_a_bad_driver_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="driver name"):
        permissions.objects("A B", service_account="sa", namespace="ns")


def test_the_command_prints_the_rules_as_yaml_documents(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.run(["rbac", "--namespace", "gpu-system"]) == 0
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == permissions.objects(
        "gpu.dragoon.dev", service_account="dragoon-plugin", namespace="gpu-system"
    )
