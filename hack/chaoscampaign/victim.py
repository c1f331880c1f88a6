"""The process under test: `dragoon plugin` with boards between it and its node.

Everything else is the product's: sockets, API client, engine, publisher. It is forked from a server
that has imported all of that already, so that a start costs a few hundredths of a second.
"""

import asyncio
import contextlib
import os
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from chaoscampaign.board import Board, Channel, Deed, Kind, die
from dragoon.app.config import PluginConfig
from dragoon.app.plugin import Plugin
from dragoon.app.preparing import host_effects
from dragoon.app.stopping import stop_signal
from dragoon.errors import DragoonError, HardwareError
from dragoon.gpu.nvml import NvmlGpus
from dragoon.gpu.sim.hardware import Hardware
from dragoon.gpu.sim.library import SimulatedLibrary
from dragoon.gpu.sim.partitioning import RefusedError
from dragoon.gpu.sim.state import State
from dragoon.kube.connecting import connect
from dragoon.prepare.effects import Effects, state_error
from dragoon.telemetry import logs

# What only looks. Whatever else the port has, or will have, is a point by construction.
READS = frozenset(
    {"read", "peek", "mode", "memory_cap", "exists", "names", "stamps", "boot_id", "lock"}
)
_CARD_READS = frozenset({"card", "instances"})
_ON_CARDS = frozenset({"set_memory_cap", "set_time_slice"})
_WRITE = "write"
_FATAL = 999  # NVML_ERROR_UNKNOWN


class Order(msgspec.Struct, frozen=True):
    """What a victim is told at its start: its settings, and the files that it shares with us.

    campaign: the pid of the campaign, without which no victim lives on.
    left_out: a call of the effects port that does nothing, to see that the campaign finds that bug.
    """

    config: PluginConfig
    hardware: str
    board: str
    trace: str
    log: str
    campaign: int
    left_out: str = ""


class Trace:
    """Appends every effect that was done, so that a power cut can be played afterwards."""

    def __init__(self, file: Path) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def add(self, name: str, arguments: tuple[Any, ...]) -> None:
        """One effect with what it was given."""
        line = msgspec.json.encode((name, [_plain(one) for one in arguments]))
        os.write(self._file, line + b"\n")


def _plain(value: object) -> object:
    """Regions are two million bytes, nearly all of them zeros."""
    return {"z": zlib.compress(value, 1)} if isinstance(value, bytes) else str(value)


class Pointed:
    """An object whose calls, but for its reads, pass the board first."""

    def __init__(
        self, inner: object, reads: frozenset[str], channel: Channel, trace: Trace | None
    ) -> None:
        self._inner = inner
        self._reads = reads
        self._channel = channel
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return found if name in self._reads else partial(self._pass, name, found)

    def _pass(self, name: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
        deed, code = self._channel.meet()
        if deed is not Deed.NOTHING:
            if name == _WRITE:  # half of the bytes are there, whatever breaks it
                path, data, mode = given
                given = (path, data[: len(data) // 2], mode)
                self._done(name, call(*given), given)
            if deed is Deed.TEAR:
                die()
            raise self._failure(name, given, code)
        return self._done(name, call(*given, **named), given)

    def _done(self, name: str, result: object, given: tuple[Any, ...]) -> object:
        if self._trace is not None:
            self._trace.add(name, given)
        return result

    def _failure(self, name: str, given: tuple[Any, ...], code: int) -> DragoonError:
        if self._trace is None or name in _ON_CARDS or not given:
            return HardwareError(f"{name}: ordered to fail", retryable=True)
        return state_error(name, given[0], OSError(code, os.strerror(code)))


class PointedEffects(Pointed):
    """The effects port; the division of cards hangs below it."""

    left_out = ""

    @property
    def mig(self) -> Pointed:
        return Pointed(self._inner.mig, _CARD_READS, self._channel, None)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        return (lambda *_: None) if name == self.left_out else super().__getattr__(name)


class PointedHardware(Hardware):
    """The machine of one process: each change of a card is a point too."""

    def __init__(self, file: Path, channel: Channel) -> None:
        super().__init__(file)
        self._channel = channel

    def change(self, decide: Callable[[State], State]) -> State:
        """See `Hardware.change`."""
        deed, _ = self._channel.meet()
        if deed is Deed.TEAR:
            die()
        if deed is not Deed.NOTHING:
            raise RefusedError(_FATAL)
        return super().change(decide)


class PointedLibrary:
    """The driver library of one process: each of its calls is a point."""

    def __init__(self, library: SimulatedLibrary, channel: Channel) -> None:
        self._library = library
        self._channel = channel

    def __getattr__(self, symbol: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self._library, symbol)
        if symbol == "nvmlErrorString":  # pynvml asks it for the words of an error
            return function

        def call(*arguments: Any) -> Any:
            deed, code = self._channel.meet()
            return function(*arguments) if deed is Deed.NOTHING else code

        return call


def live(order: bytes) -> None:
    """The life of a victim, from its fork to its death."""
    told = msgspec.json.decode(order, type=Order)
    log = os.open(told.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    logs.configure(form="json", level="info")
    asyncio.run(_serve(told))


async def _serve(told: Order) -> None:
    board = Board(Path(told.board))
    hardware = PointedHardware(Path(told.hardware), board[Kind.EFFECTS])
    library = PointedLibrary(SimulatedLibrary(hardware), board[Kind.DRIVER_CALLS])
    stop = stop_signal()
    # Readable when that process has ended.
    asyncio.get_running_loop().add_reader(os.pidfd_open(told.campaign), die)
    async with contextlib.AsyncExitStack() as stack:
        gpus = NvmlGpus(hardware.roots, stand_in=library)
        stack.push_async_callback(asyncio.to_thread, gpus.close)
        api = await connect(Path(told.config.kubeconfig))
        stack.push_async_callback(api.close)
        inner = host_effects(told.config, gpus.limits, gpus.mig)
        effects = PointedEffects(inner, READS, board[Kind.EFFECTS], Trace(Path(told.trace)))
        effects.left_out = told.left_out
        await Plugin(
            told.config,
            gpus=gpus,
            api=api,
            mig=gpus.mig,
            limits=gpus.limits,
            effects=cast("Effects", effects),
        ).run(stop)
