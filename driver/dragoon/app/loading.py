"""The table of a process's settings, and their values from file, environment and flags.

A later source wins over an earlier one. Every setting is one field of a config class, from which
its key in the file, its flag, its environment variable and its line in the docs follow.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from dragoon.app import config_file
from dragoon.app.setting import Setting

CONFIG_VARIABLE: Final = "DRAGOON_CONFIG"
# These come from the downward API, under the names that manifests usually give them.
_DOWNWARD: Final = ("node_name", "pod_name", "pod_namespace", "pod_uid")

Config = TypeVar("Config", bound=msgspec.Struct)


def table_of(kind: type[msgspec.Struct]) -> dict[str, Setting]:
    """The settings of a config class, by Python name."""
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for field in msgspec.structs.fields(kind):
        upper = field.name.upper()
        found[field.name] = Setting(
            name=field.name,
            key=field.encode_name,
            variable=upper if field.name in _DOWNWARD else f"DRAGOON_{upper}",
            kind=hints[field.name],
            default=field.default,
            text=msgspec.json.schema(hints[field.name])["description"],
        )
    return found


def load(
    kind: type[Config],
    table: Mapping[str, Setting],
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    file: str | None = None,
) -> Config:
    """The settings from all sources, checked one by one; ConfigError names the first bad one.

    flags: by Python name, None or absent where not given. file: overrides DRAGOON_CONFIG. An empty
    environment variable counts as not set.
    """
    path = file or environment.get(CONFIG_VARIABLE)
    values = config_file.read(Path(path), table.values()) if path else {}
    for setting in table.values():
        if environment.get(setting.variable):
            values[setting.name] = setting.convert(
                environment[setting.variable],
                f"environment variable {setting.variable}",
                strict=False,
            )
        if flags.get(setting.name) is not None:
            values[setting.name] = setting.convert(
                flags[setting.name], f"flag {setting.flag}", strict=False
            )
    return kind(**values)


def table_lines(settings: Iterable[Setting]) -> list[str]:
    """The settings as a Markdown table."""
    return [
        "| field | flag | environment | default | allowed | meaning |",
        "|---|---|---|---|---|---|",
        *(
            f"| `{one.key}` | `{one.flag}` | `{one.variable}` | {_shown(one.default)} | "
            f"{one.allowed.replace('|', chr(92) + '|')} | {one.text} |"
            for one in settings
        ),
    ]


def _shown(default: Any) -> str:
    if default == "":
        return "none"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"
