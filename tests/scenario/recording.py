"""The API server with a note of every call, for comparing rights with what is really asked."""

from collections.abc import Callable
from typing import Any, Final

from dragoon.app.permissions import Rule
from dragoon.kube.memory import MemoryApi
from dragoon.kube.port import Resource

_RBAC_VERBS: Final = {"replace": "update", "pages": "list"}
"""Where the verb of the port is not RBAC's."""


class Recording:
    """The API server, with a note of every call made through it."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self.made: set[tuple[str, str]] = set()

    async def version(self) -> Any:
        """Everybody may ask for it (system:public-info-viewer)."""
        return await self._api.version()

    async def groups(self) -> Any:
        """Everybody may ask for them (system:discovery)."""
        return await self._api.groups()

    async def plurals(self, group: str, version: str) -> Any:
        """So may they for these."""
        return await self._api.plurals(group, version)

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(resource: Resource, *arguments: Any, **options: Any) -> Any:
            target = "/".join(filter(None, (resource.plural, options.get("subresource"))))
            self.made.add((_RBAC_VERBS.get(verb, verb), target))
            return getattr(self._api, verb)(resource, *arguments, **options)

        return call


def rights(*rules: Rule) -> set[tuple[str, str]]:
    """Verb and target of everything that the rules grant."""
    return {(verb, rule.target) for rule in rules for verb in rule.verbs}
