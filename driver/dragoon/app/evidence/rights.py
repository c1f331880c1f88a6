"""Which rights our processes lack, as the API server's authorizer says."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from dragoon.app import permissions
from dragoon.app.permissions import Rule
from dragoon.diagnose import installed
from dragoon.diagnose.checking.evidence import MissingRight, Unread
from dragoon.diagnose.manifests import mapping, text
from dragoon.diagnose.snapshot import ClusterSnapshot, identity
from dragoon.errors import ApiError
from dragoon.kube import rights
from dragoon.kube.port import PODS, Api
from dragoon.kube.rights import Right

_AT_ONCE: Final = 16
_RULES: Final[Mapping[str, Sequence[tuple[Rule, bool]]]] = {
    installed.PLUGIN: [(one, False) for one in permissions.PLUGIN_RULES],
    installed.CONTROLLER: [
        *((one, False) for one in permissions.CONTROLLER_RULES),
        *((one, True) for one in permissions.CONTROLLER_HOME_RULES),
    ],
}
"""Of each process its rules, and whether they are for its own namespace only."""

Account = tuple[str, str]
"""Namespace and name of a ServiceAccount."""


async def missing(api: Api, driver: str) -> tuple[MissingRight, ...] | Unread:
    """What the ServiceAccounts of our pods may not do. Raises ApiError where one may not ask."""
    # Asked for beside the other lists: whoever waits for one of those still learns this.
    try:
        ours = await api.list(PODS, labels=f"{installed.PART_OF}={installed.OURS}")
    except ApiError as error:
        return Unread(f"{PODS.plural}: {error.message}")
    accounts = list(accounts_of(ClusterSnapshot(pods=ours.items)))
    if not accounts:
        return Unread("no pod of Dragoon is seen, so nobody's rights are known")
    gate = asyncio.Semaphore(_AT_ONCE)

    async def ask(account: Account, rule: Rule, right: Right) -> MissingRight | None:
        async with gate:
            if await rights.allowed(api, *account, right):
                return None
        return MissingRight("/".join(account), str(right), rule.why)

    answers = await asyncio.gather(
        *(
            ask(account, rule, right)
            for component, account in accounts
            for rule, right in rights_of(component, account[0], driver)
        )
    )
    return tuple(one for one in answers if one is not None)


def accounts_of(snapshot: ClusterSnapshot) -> Iterable[tuple[str, Account]]:
    """Our processes with the account that their pods use, each once."""
    found: dict[tuple[str, Account], None] = {}
    for component in _RULES:
        for pod in installed.pods_of(snapshot, component):
            account = text(mapping(pod.get("spec")).get("serviceAccountName"))
            if account:
                found[component, (identity(pod)[0], account)] = None
    return found


def rights_of(component: str, namespace: str, driver: str) -> Iterator[tuple[Rule, Right]]:
    """What a process needs, one verb at a time, and for what."""
    for rule, at_home in _RULES[component]:
        for verb in rule.verbs:
            yield (
                rule,
                Right(
                    verb,
                    rule.resource,
                    rule.subresource,
                    namespace if at_home else "",
                    driver if rule.of_driver else "",
                ),
            )
