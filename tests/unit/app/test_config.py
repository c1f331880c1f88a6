from pathlib import Path

import pytest

from dragoon.app import config, controller_config
from dragoon.app.config import SETTINGS, PluginConfig, check_plugin, load, parse_listen
from dragoon.app.setting import Setting
from dragoon.errors import ConfigError
from dragoon.health.verdict import Effect, Kind

DOCS = Path(__file__).parents[3] / "docs"


def a_file(folder: Path, text: str) -> str:
    path = folder / "dragoon.yaml"
    path.write_text(text)
    return str(path)


def test_without_any_source_the_defaults_hold() -> None:
    found = load({}, {})
    assert found == PluginConfig()
    assert found.driver_name == "gpu.dragoon.dev"
    assert found.state_folder == Path("/var/lib/kubelet/plugins/gpu.dragoon.dev")


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    file = a_file(tmp_path, "nodeName: of-file\ncdiRoot: /of/file\nkubeletRoot: /of/file\n")
    environment = {"NODE_NAME": "of-environment", "DRAGOON_CDI_ROOT": "/of/environment"}
    found = load({"node_name": "of-flag"}, environment, file=file)
    assert found.node_name == "of-flag"
    assert found.cdi_root == "/of/environment"
    assert found.kubelet_root == "/of/file"
    assert found.dev_root == "/"


def test_the_downward_api_is_read_under_its_usual_names() -> None:
    found = load(
        {}, {"NODE_NAME": "n1", "POD_NAME": "p", "POD_NAMESPACE": "ns", "POD_UID": "abc-1"}
    )
    assert (found.node_name, found.pod_name, found.pod_namespace, found.pod_uid) == (
        "n1",
        "p",
        "ns",
        "abc-1",
    )


def test_an_empty_variable_and_an_absent_flag_count_as_not_set(tmp_path: Path) -> None:
    file = a_file(tmp_path, "nodeName: of-file\n")
    assert load({"node_name": None}, {"NODE_NAME": ""}, file=file).node_name == "of-file"


def test_the_file_can_be_named_by_the_environment(tmp_path: Path) -> None:
    file = a_file(tmp_path, "nodeName: n1\n")
    assert load({}, {"DRAGOON_CONFIG": file}).node_name == "n1"


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load({}, {}, file=a_file(tmp_path, "# nothing yet\n")) == PluginConfig()


def test_text_of_flags_and_environment_becomes_a_number() -> None:
    assert load({}, {"DRAGOON_INVENTORY_SECONDS": "12.5"}).inventory_seconds == 12.5


def test_the_state_folder_follows_the_kubelets_and_the_drivers_name() -> None:
    moved = load({"kubelet_root": "/k", "driver_name": "gpu.example.com"}, {})
    assert moved.state_folder == Path("/k/plugins/gpu.example.com")
    assert load({"state_dir": "/s"}, {}).state_folder == Path("/s")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nodename: n1", r"field nodename: unknown, allowed are driverName, kubeconfig, .*"),
        ("nodeName: 7", r"field nodeName: found 7, allowed is text"),
        ("nodeName:", r"field nodeName: found nothing, allowed is text"),
        ("nodeName: {a: b}", r"field nodeName: found a mapping, allowed is text"),
        ("inventorySeconds: '60'", r"found '60', allowed is a number from 1 to 3600"),
        ("inventorySeconds: 0", r"found 0, allowed is a number from 1 to 3600"),
        ("inventorySeconds: .nan", r"found nan, allowed is a number from 1 to 3600"),
        ("logLevel: loud", r"found 'loud', allowed is one of debug, error, info, warning"),
        ("cdiRoot: var/run", r"found 'var/run', allowed is an absolute path"),
        ("podUid: ../../x", r"found '../../x', allowed is at most 63 letters, digits and -"),
        ("forms: whole,foo", r"found 'whole,foo', allowed is one or more of whole, shared, mig,"),
        (
            "forms: |\n  whole\n",
            r"found 'whole\\n', with a character that .*, allowed is one or more of",
        ),
        ("- a\n- b", r"found a list, allowed is a mapping of fields"),
        ("nodeName: a\nnodeName: b", r"field nodeName is given twice"),
        ("a: [", r"not YAML"),
        ("nodeName: 2026-13-45", r"not YAML: month must be in 1..12"),
        ("nodeName: 0x_", r"not YAML"),
        ("? [a]\n: b", r"not YAML"),
    ],
)
def test_a_bad_file_names_file_field_found_and_allowed(
    tmp_path: Path, text: str, told: str
) -> None:
    file = a_file(tmp_path, text)
    with pytest.raises(ConfigError, match=told) as caught:
        load({}, {}, file=file)
    assert file in caught.value.message


@pytest.mark.parametrize(
    "setting", [*SETTINGS.values(), *controller_config.SETTINGS.values()], ids=lambda one: one.key
)
def test_what_a_setting_takes_is_said_in_words_and_not_as_a_pattern(setting: Setting) -> None:
    assert not set("^$[]{}()*\\").intersection(setting.allowed), setting.allowed


@pytest.mark.parametrize("end", ["\n", "\r", "\t", "\0", "\x7f", "\udcff"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hami_sha256", "0" * 64),
        ("pod_uid", "a"),
        ("cdi_root", "/a"),
        ("state_dir", "/a"),
        ("mig_profiles", "all"),
        ("ignored_xids", "46"),
        ("node_name", "n"),
    ],
)
def test_a_line_break_or_another_control_character_is_refused_in_every_text(
    name: str, value: str, end: str
) -> None:
    assert getattr(load({name: value}, {}), name) == value
    with pytest.raises(ConfigError, match=r"found .*, with a character that .*, allowed is"):
        load({name: value + end}, {})


def test_a_slip_in_a_field_name_is_answered_with_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load({}, {}, file=a_file(tmp_path, "nodeNam: n1"))
    assert caught.value.hint == "did you mean nodeName?"


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match="config file /nowhere/x: No such file"):
        load({}, {}, file="/nowhere/x")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=f"config file {path}: no text in UTF-8"):
        load({}, {}, file=str(path))


def test_a_bad_variable_or_flag_is_named_as_the_user_knows_it() -> None:
    with pytest.raises(
        ConfigError, match=r"environment variable DRAGOON_INVENTORY_SECONDS: found 'x'"
    ):
        load({}, {"DRAGOON_INVENTORY_SECONDS": "x"})
    with pytest.raises(ConfigError, match="flag --cdi-root: found 'x', allowed is an absolute"):
        load({"cdi_root": "x"}, {})


def test_the_plugin_needs_a_node_name() -> None:
    with pytest.raises(ConfigError, match="nodeName: found nothing") as caught:
        check_plugin(load({}, {}))
    assert "NODE_NAME" in caught.value.hint
    assert check_plugin(load({"node_name": "n1"}, {})).node_name == "n1"


@pytest.mark.parametrize("name", ["Node", "a_b", "-a", "a" * 254, "a/b", "a\n"])
def test_a_node_name_is_checked_before_it_reaches_an_object_name(name: str) -> None:
    with pytest.raises(ConfigError, match=r"node.name: found"):
        check_plugin(load({"node_name": name}, {}))


def test_a_driver_name_over_63_characters_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"driver name: found .* at most 63"):
        check_plugin(load({"node_name": "n", "driver_name": "a" * 64}, {}))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8080", (None, 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:9", ("::1", 9)),
        ("0.0.0.0:65535", ("0.0.0.0", 65535)),
    ],
)
def test_listen_addresses(text: str, expected: tuple[str | None, int]) -> None:
    assert parse_listen(text) == expected


@pytest.mark.parametrize(
    "text", ["", "8080", "host:1", ":", ":x", ":65536", ":" + "9" * 5000, ":-1", ":٣"]
)
def test_a_bad_listen_address_says_what_is_allowed(text: str) -> None:
    with pytest.raises(ConfigError, match="allowed is address:port"):
        parse_listen(text)


def test_no_two_settings_share_a_flag_a_key_or_a_variable() -> None:
    for names in zip(*((s.flag, s.key, s.variable) for s in SETTINGS.values()), strict=True):
        assert len(set(names)) == len(SETTINGS)


def test_the_documentation_is_made_from_the_settings() -> None:
    wanted = config.reference() + controller_config.reference()
    assert (DOCS / "configuration.md").read_text() == wanted, (
        "run: dragoon reference configuration > docs/configuration.md"
    )


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("taint_effects", "xid=Evict", "taintEffects: xid: found 'Evict'"),
        ("taint_effects", "lost=None", "taintEffects: lost"),
        ("ignored_xids", "1234567", "ignoredXids: found '1234567'"),
    ],
)
def test_what_errors_of_gpus_lead_to_is_checked_at_the_start(
    setting: str, value: str, named: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_plugin(PluginConfig(node_name="n", **{setting: value}))  # type: ignore[arg-type]
    assert named in caught.value.message


def test_what_errors_of_gpus_lead_to_is_read_from_the_settings() -> None:
    config = PluginConfig(
        taint_effects="xid=NoExecute", ignored_xids="46,119", unknown_xids="report"
    )
    assert config.health.effects[Kind.XID] is Effect.NO_EXECUTE
    assert config.health.harmless == {46, 119}
    assert config.health.trust_unknown
