"""A gRPC server behind one Unix socket that is safe to have neighbours.

gRPC binds over whatever is at a path and unlinks the path when it stops, whoever is served there
by then. So it binds a hidden name that nobody else can have, and the real
name is a hard link to it, made when the server answers: link(2) never replaces a file. At the end
the real name is removed only if it is still the same file.
"""

import os
import secrets
import socket
import stat
from collections.abc import Sequence
from pathlib import Path

import grpc
import structlog

from dragoon.errors import KubeletError
from dragoon.kubelet.sockets import HIDDEN_PREFIX, Inode, is_dead, make_folder

_log = structlog.get_logger(__name__)

_SOCKET_MODE = 0o600


class SocketServer:
    """Serves handlers at a path, from start to stop; both may be repeated."""

    def __init__(self, path: Path, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self.path = path
        self._hidden = path.with_name(HIDDEN_PREFIX + secrets.token_hex(6))
        self._handlers = handlers
        self._server: grpc.aio.Server | None = None
        self._inode: Inode | None = None

    async def start(self) -> None:
        """Serves, then shows the socket. Raises KubeletError and leaves nothing behind."""
        make_folder(self.path.parent)
        self._inode = None
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers(tuple(self._handlers))
        try:
            self._server.add_insecure_port(f"unix:{self._hidden}")
            await self._server.start()
            self._show()  # not in a thread: it must not go on when this start is cancelled
        except (RuntimeError, OSError) as error:
            raise KubeletError(
                f"cannot serve on {self.path}: {error}",
                hint="check the permissions of its folder and the space on its file system",
            ) from error
        finally:
            self._hidden.unlink(missing_ok=True)
            if self._inode is None:
                await self._server.stop(None)

    def intact(self) -> bool:
        """Whether the file at the path is still the socket of this server."""
        return self._inode is not None and Inode.of(self.path) == self._inode

    def hide(self) -> None:
        """Removes the socket from its path, unless another file is there by now.

        Open connections live on; new ones are not possible.
        """
        if self.intact():
            try:
                self.path.unlink(missing_ok=True)
            except OSError as error:
                _log.warning("cannot remove our socket", path=str(self.path), error=str(error))

    def has_connections(self) -> bool:
        """Whether a client is connected. gRPC does not tell, so our own descriptors are asked."""
        return any(_bound_to(entry, self._hidden) for entry in Path("/proc/self/fd").iterdir())

    async def stop(self, grace: float | None = None) -> None:
        """Hides the socket and ends the server; calls in flight get `grace` seconds. Idempotent."""
        self.hide()
        if self._server is not None:
            await self._server.stop(grace)

    def _show(self) -> None:
        self._hidden.chmod(_SOCKET_MODE)
        if is_dead(self.path):
            self.path.unlink(missing_ok=True)
        try:
            self.path.hardlink_to(self._hidden)
        except FileExistsError as error:
            raise _in_the_way(self.path) from error
        self._inode = Inode.of(self._hidden)


def _bound_to(entry: Path, path: Path) -> bool:
    """Whether the descriptor is an accepted connection of the server bound to the path."""
    try:
        copy = os.dup(int(entry.name))
    except OSError:  # closed since it was listed
        return False
    if not stat.S_ISSOCK(os.fstat(copy).st_mode):
        os.close(copy)
        return False
    with socket.socket(fileno=copy) as found:
        return (
            found.family == socket.AF_UNIX
            and found.getsockname() == str(path)
            and not found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        )


def _in_the_way(path: Path) -> KubeletError:
    if path.is_socket():
        return KubeletError(
            f"another process serves on {path}",
            hint="give each instance its own UID, or stop the other one",
        )
    return KubeletError(f"{path} is in the way and not a socket", hint="move it away")
