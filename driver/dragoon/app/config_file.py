"""The config file: strict YAML, every field one of the settings."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from dragoon.api.decoding import NOT_YAML
from dragoon.app.setting import Setting, kind_of
from dragoon.errors import ConfigError, InvalidInputError
from dragoon.reading import text_of


def read(path: Path, settings: Iterable[Setting]) -> dict[str, Any]:
    """The values of the file, by Python name.

    Raises ConfigError, naming file and field, for an unknown or repeated field or a wrong value.
    """
    try:
        raw = yaml.load(text_of(path), Loader=_StrictLoader)  # noqa: S506 - a SafeLoader
    except InvalidInputError as error:
        raise ConfigError(f"config file {error.message}") from error
    except NOT_YAML as error:
        raise ConfigError(f"config file {path}: not YAML: {_one_line(error)}") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(
            f"config file {path}: found {kind_of(raw)}, allowed is a mapping of fields"
        )
    by_key = {setting.key: setting for setting in settings}
    for key in raw:
        if key not in by_key:
            raise _unknown_field(path, str(key), list(by_key))
    return {
        by_key[key].name: by_key[key].convert(
            value, f"config file {path}: field {key}", strict=True
        )
        for key, value in raw.items()
    }


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses a key given twice: the second would win without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
        seen = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"field {key.value} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _unknown_field(path: Path, key: str, allowed: list[str]) -> ConfigError:
    close = difflib.get_close_matches(key, allowed, n=1)
    return ConfigError(
        f"config file {path}: field {key}: unknown, allowed are {', '.join(allowed)}",
        hint=f"did you mean {close[0]}?" if close else None,
    )


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
