"""The DRAPlugin service: what the kubelet calls before a pod starts and after it has ended.

One implementation for all versions. An answer always has an entry for every claim that was asked
for, and an error stands in the entry of its claim: an error of the call as a whole would cost
every claim in it, and the kubelet looks again only after 60 to 90 s.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import grpc
import structlog

from dragoon.api.claims import ClaimRef
from dragoon.api.names import check_uid
from dragoon.errors import DragoonError, InvalidInputError
from dragoon.kubelet import rpc
from dragoon.kubelet.messages import DRA_VERSIONS, DraVersion, read_claims, write_device
from dragoon.prepare.port import Preparer
from dragoon.telemetry.logs import about, operation_id

_log = structlog.get_logger(__name__)

_Answer = TypeVar("_Answer")


class DraPlugin:
    """Serves a Preparer to the kubelet; claims of one call run side by side.

    The Preparer guards itself against concurrent calls and cancellation: the kubelet asks for one
    claim twice at once, and gRPC cancels a call at its deadline.
    """

    def __init__(self, preparer: Preparer) -> None:
        self._preparer = preparer
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def handlers(self) -> tuple[grpc.GenericRpcHandler, ...]:
        """The handlers of every version."""
        return tuple(
            rpc.handlers(
                version.service,
                {
                    "NodePrepareResources": partial(self._node_prepare, version),
                    "NodeUnprepareResources": partial(self._node_unprepare, version),
                },
            )
            for version in DRA_VERSIONS
        )

    async def wait_idle(self) -> None:
        """Returns when no call is running."""
        await self._idle.wait()

    async def _node_prepare(self, version: DraVersion, request: Any, _context: Any) -> Any:
        response = version.wire.NodePrepareResourcesResponse()
        answers = await self._each(read_claims(request), self._preparer.prepare)
        for uid, answer in answers.items():
            entry = response.claims[uid]
            if isinstance(answer, DragoonError):
                entry.error = _text(answer)
            else:
                entry.devices.extend(write_device(version, device) for device in answer)
        return response

    async def _node_unprepare(self, version: DraVersion, request: Any, _context: Any) -> Any:
        response = version.wire.NodeUnprepareResourcesResponse()
        answers = await self._each(read_claims(request), self._preparer.unprepare)
        for uid, answer in answers.items():
            response.claims[uid].error = "" if answer is None else _text(answer)
        return response

    async def _each(
        self, claims: Iterable[ClaimRef], work: Callable[[ClaimRef], Awaitable[_Answer]]
    ) -> dict[str, _Answer | DragoonError]:
        """Does the work for every claim at once; the answers by UID, one for each UID asked for."""
        by_uid: dict[str, set[ClaimRef]] = {}
        for claim in claims:
            by_uid.setdefault(claim.uid, set()).add(claim)
        self._in_flight += 1
        self._idle.clear()
        try:
            answers = await _side_by_side(
                [_traced(uid, refs, work) for uid, refs in by_uid.items()]
            )
        except asyncio.CancelledError:
            _log.warning("call cut off by the kubelet", claims=list(by_uid))
            raise
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()
        return dict(zip(by_uid, answers, strict=True))


async def _side_by_side(attempts: Sequence[Coroutine[Any, Any, _Answer]]) -> list[_Answer]:
    """Their answers in order. One alone, the usual call, needs no task of its own."""
    if len(attempts) == 1:
        return [await attempts[0]]
    return await asyncio.gather(*attempts)


async def _traced(
    uid: str, refs: set[ClaimRef], work: Callable[[ClaimRef], Awaitable[_Answer]]
) -> _Answer | DragoonError:
    """The attempt; its log lines, in its threads too, carry the claim's UID and an operation id."""
    with about(claim_uid=uid, operation=operation_id()):
        return await _attempt(refs, work)


async def _attempt(
    refs: set[ClaimRef], work: Callable[[ClaimRef], Awaitable[_Answer]]
) -> _Answer | DragoonError:
    """The work for one claim, its failure as a value. Cancelling the call goes through."""
    try:
        return await work(_the_claim(refs))
    except DragoonError as error:
        _log.warning("claim failed", claims=[str(ref) for ref in refs], error=repr(error))
        return error
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Not this call was cancelled: something within the attempt was.
        return DragoonError("the attempt was cut off from within", retryable=True)
    except Exception as error:  # noqa: BLE001  a defect costs its own claim only
        _log.exception("claim failed unexpectedly", claims=[str(ref) for ref in refs])
        return DragoonError(
            f"unexpected {type(error).__name__}: {error}",
            hint="this is a defect of the driver; its log has the details",
        )


def _the_claim(refs: set[ClaimRef]) -> ClaimRef:
    """The one claim with this UID. Raises InvalidInputError."""
    if len(refs) > 1:
        found = ", ".join(sorted(str(ref) for ref in refs))
        raise InvalidInputError(f"claims: found {found}, allowed is one claim with a UID")
    (ref,) = refs
    check_uid(ref.uid, field="claims.uid")
    if not ref.name or not ref.namespace:
        raise InvalidInputError(f"claims: found {ref}, a name and a namespace are required")
    return ref


def _text(error: DragoonError) -> str:
    """What the pod's event shows: code, message and hint."""
    return f"{error.code}: {error}"
