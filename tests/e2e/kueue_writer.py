"""A check's controller for one Workload, played with the code that writes for ours."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dragoon.errors import ApiConflictError
from dragoon.gang.kueue.actions import Say
from dragoon.gang.kueue.apis import CONTROLLER, Apis
from dragoon.gang.kueue.deciding import decide_check
from dragoon.gang.kueue.executing import Executor
from dragoon.gang.kueue.model import State
from dragoon.gang.kueue.reading import check_of, workload_of
from dragoon.kube.connecting import connect
from dragoon.kube.port import Api

Object = dict[str, Any]


@dataclass
class Writer:
    """Writes in one version of Kueue's API. check: the name of the AdmissionCheck."""

    kubeconfig: Path
    apis: Apis
    check: str

    def activate(self) -> None:
        """The check is active from now on."""
        asyncio.run(self._written(self._activated))

    def say(self, workload: Object, state: State, *, at_once: bool = False, **more: Any) -> None:
        """Writes a state of the Workload's only check."""
        meta = workload["metadata"]

        async def said(executor: Executor, api: Api) -> Object:
            raw = await api.get(self.apis.workloads, meta["name"], namespace=meta["namespace"])
            seen = workload_of(raw)
            assert [one.name for one in seen.checks] == [self.check]
            stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            entry = {"name": self.check, "state": state, "lastTransitionTime": stamp}
            entries = ({**entry, "message": "told", **more},)
            return await executor.say(Say(seen.ref, state, "told", entries, at_once))

        asyncio.run(self._written(said))

    async def _activated(self, executor: Executor, api: Api) -> Object:
        found = check_of(await api.get(self.apis.checks, self.check))
        action = decide_check(replace(found, controller=CONTROLLER), datetime.now(UTC))
        assert action is not None
        return await executor.set_conditions(action)

    async def _written(self, write: Callable[[Executor, Api], Awaitable[Object]]) -> Object:
        """The answer to a write; Kueue writes to the same objects."""
        api = await connect(self.kubeconfig)
        try:
            while True:
                try:
                    return await write(Executor(api, self.apis), api)
                except ApiConflictError:
                    continue
        finally:
            await api.close()
