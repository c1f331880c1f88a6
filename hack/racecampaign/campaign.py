"""One run: gangs come while everything else happens; afterwards it is calm, and is looked at."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dragoon.api import gang
from dragoon.errors import ApiConflictError, ApiError
from dragoon.kube.client import KubeClient
from dragoon.kube.port import CLAIMS, GANGS, NAMESPACES, NODES, PODS, TAINT_RULES, Object
from racecampaign.crowd import Crowd, Wish, wishes
from racecampaign.guarding import let_go
from racecampaign.hands import Hands
from racecampaign.history import write
from racecampaign.objects import allocated, is_alive
from racecampaign.proxy import Moment
from racecampaign.reaching import Reach, delete
from racecampaign.wholeness import partial_gangs
from racecampaign.witness import Witness
from testbed.fleet import Fleet

_STORM_S: Final = 6.0
_PATIENCE_S: Final = 120.0
_LOOK_S: Final = 0.1
_STEPS: Final = 40
"""So many writes a controller makes for a small gang from its discovery until it runs."""
_NODE_AWAY_S: Final = 1.0
_ERRORS: Final = 0.03
_MOST_DELETED: Final = 3

Say = Callable[[str], None]


class Run:
    """In one namespace of its own.

    room: GPUs of the cluster. keep: the folder for the histories of runs in which something was
    wrong.
    """

    def __init__(
        self,
        client: KubeClient,
        reach: Reach,
        hands: Hands,
        witness: Witness,
        rng: random.Random,
        *,
        name: str,
        number: int,
        fleet: Fleet,
        nodes: Sequence[str],
        room: int,
        keep: Path | None = None,
    ) -> None:
        self._client = client
        self._reach = reach
        self._hands = hands
        self._witness = witness
        self._rng = rng
        self._namespace = name
        self._room = room
        self._keep = keep
        self._wishes = tuple(wishes(rng, room))
        self._sizes = {wish.name: wish.size for wish in self._wishes}
        self._crowd = Crowd(client, name, rng)
        self._fleet = fleet
        self._nodes = nodes
        # Every step is a place to die at, before and after, as runs go on.
        self._write = number // 2 % _STEPS + 1
        self._moment = list(Moment)[number % 2]

    def __str__(self) -> str:
        wanted = ", ".join(f"{one.name} {one.size}x{one.gpus}" for one in self._wishes)
        return f"{self._namespace}: gangs {wanted}"

    async def run(self, say: Say) -> list[str]:
        """Everything once; answers what was wrong."""
        before = len(self._witness.found)
        await self._begin()
        crowd = asyncio.create_task(self._crowd.come_and_go())
        await self._storm(say)
        self._hands.calm()
        crowd.cancel()
        await asyncio.gather(crowd, return_exceptions=True)
        await self._crowd.leave()
        wrong = await self._all_run()
        wrong += await self._nothing_left()
        wrong += self._witness.found[before:]
        wrong += await self._judged(wrong)
        await self._leave()
        return wrong

    async def _begin(self) -> None:
        meta = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        await self._client.create(NAMESPACES, meta)
        for gpus in sorted({1, 2, *(wish.gpus for wish in self._wishes)}):
            await self._crowd.template(gpus)
        await self._eventually(self._can_make_pods)

    async def _can_make_pods(self) -> bool:
        """A namespace takes pods as soon as it has its ServiceAccount."""
        probe = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "namespace": self._namespace},
            "spec": {"containers": [{"name": "c", "image": "none"}]},
        }
        try:
            await self._client.create(PODS, probe, dry_run=True)
        except ApiError:
            return False
        return True

    async def _storm(self, say: Say) -> None:
        """Gangs arrive one after another; controllers die, writes fail, pods are deleted."""
        self._hands.disturb(_ERRORS if self._rng.random() < 0.5 else 0.0)
        again = _STEPS if self._rng.random() < 0.5 else 0
        self._hands.kill_at(self._write, self._moment, again)
        say(f"{self}; death {self._moment} write {self._write}{', and again' if again else ''}")
        ends = time.monotonic() + _STORM_S
        for wish in self._wishes:
            await self._crowd.gang(wish)
            await asyncio.sleep(self._rng.uniform(0.0, 0.7))
        for _ in range(self._rng.randint(0, _MOST_DELETED)):
            await asyncio.sleep(self._rng.uniform(0.0, 1.0))
            await self._delete_somebody(say)
        if self._rng.random() < 0.3:
            await self._lose_a_node(say)
        await asyncio.sleep(max(0.0, ends - time.monotonic()))

    async def _lose_a_node(self, say: Say) -> None:
        """The Node object goes, its pods are collected, and it comes back."""
        name = self._rng.choice(self._nodes)
        say(f"  deletes node {name} for a while")
        await self._client.delete(NODES, name)
        await asyncio.sleep(_NODE_AWAY_S)
        await self._fleet.ensure_node(name)

    async def _delete_somebody(self, say: Say) -> None:
        pods = (await self._client.list(PODS, namespace=self._namespace, labels=gang.LABEL)).items
        if not pods:
            return
        name = self._rng.choice(pods)["metadata"]["name"]
        say(f"  deletes member {name}")
        with suppress(ApiError):
            await self._client.delete(PODS, name, namespace=self._namespace)

    async def _all_run(self) -> list[str]:
        """Every gang that fits runs in the end.

        All fit together if they lie well. Ordinary pods may have made small ones lie so that a
        large one does not fit beside them: it runs when those have ended.
        """
        if await self._eventually(self._is_running):
            return []
        waiting = await self._waiting()
        running = [wish for wish in self._wishes if wish not in waiting]
        free = await self._free_beside(running)
        if any(wish.fits(free) for wish in waiting):
            return await self._do_not_run(waiting)
        for wish in running:
            await self._delete_job(wish.name)
        self._wishes = waiting
        return [] if await self._eventually(self._is_running) else await self._do_not_run(waiting)

    async def _do_not_run(self, waiting: Iterable[Wish]) -> list[str]:
        return [
            f"{self._namespace}/{one.name}: does not run: {await self._said(one)}"
            for one in waiting
        ]

    async def _is_running(self) -> bool:
        return not await self._waiting()

    async def _waiting(self) -> tuple[Wish, ...]:
        """The gangs of which a member is not bound."""
        bound = [(wish, await self._bound(wish)) for wish in self._wishes]
        return tuple(wish for wish, nodes in bound if len(nodes) < wish.size)

    async def _free_beside(self, running: Iterable[Wish]) -> list[int]:
        """GPUs of each node that these gangs do not have. Ordinary pods are gone."""
        free = dict.fromkeys(self._nodes, self._room // len(self._nodes))
        for wish in running:
            for node in await self._bound(wish):
                free[node] -= wish.gpus
        return list(free.values())

    async def _bound(self, wish: Wish) -> list[str]:
        """The nodes of the members that are bound, one for each."""
        selector = f"{gang.LABEL}={wish.name}"
        pods = (await self._client.list(PODS, namespace=self._namespace, labels=selector)).items
        return [
            pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName") and is_alive(pod)
        ]

    async def _said(self, wish: Wish) -> str:
        try:
            found = await self._client.get(GANGS, wish.name, namespace=self._namespace)
        except ApiError as error:
            return str(error)
        status = found.get("status") or {}
        return f"{status.get('phase')}: {status.get('waitingFor')}; {status.get('explanation')}"

    async def _nothing_left(self) -> list[str]:
        """With the Jobs gone nothing of the gangs is there, and the namespace can be deleted."""
        for wish in self._wishes:
            await self._delete_job(wish.name)
        gone = await self._eventually(self._is_empty)
        return [] if gone else [f"{self._namespace}: left {'; '.join(await self._leftovers())}"]

    async def _judged(self, wrong: list[str]) -> list[str]:
        """What was wrong in the history of the run, which is kept if anything was."""
        history = await self._witness.all_of(self._namespace)
        found = partial_gangs(history, self._sizes) + let_go(history)
        if self._keep is not None and (found or wrong):
            await asyncio.to_thread(write, history, self._keep / f"{self._namespace}.jsonl")
        return found

    async def _leave(self) -> None:
        with suppress(ApiConflictError):
            await self._client.delete(NAMESPACES, self._namespace)

    async def _delete_job(self, name: str) -> None:
        """Its pods go with it: through the garbage collector, as kubectl does it."""
        path = f"/apis/batch/v1/namespaces/{self._namespace}/jobs/{name}"
        async with self._reach.session() as session:
            await delete(session, path, propagationPolicy="Background")

    async def _is_empty(self) -> bool:
        return not await self._leftovers()

    async def _leftovers(self) -> list[str]:
        found = [
            f"{resource.kind} {one['metadata']['name']}{_why(one)}"
            for resource in (PODS, CLAIMS, GANGS)
            for one in (await self._client.list(resource, namespace=self._namespace)).items
        ]
        rules = (await self._client.list(TAINT_RULES)).items
        return found + [f"rule {one['metadata']['name']}" for one in rules]

    async def _eventually(self, look: Callable[[], Awaitable[bool]]) -> bool:
        deadline = time.monotonic() + _PATIENCE_S
        while not await look():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_S)
        return True


def _why(made: Object) -> str:
    meta: dict[str, Any] = made["metadata"]
    marks = [
        *(["allocated"] if allocated(made) else []),
        *(["deleting"] if meta.get("deletionTimestamp") else []),
        *(meta.get("finalizers") or ()),
    ]
    return f" ({', '.join(marks)})" if marks else ""
