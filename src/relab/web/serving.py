"""How does the dashboard come up? A socket on this machine's own address, uvicorn on it, one line that says where."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from relab.base.errors import UserError
from relab.web import guard

TRIED = 20  # ports after the one that is wanted, where it is taken


def listening(host: str, port: int, exactly: bool) -> socket.socket:
    """A socket at the port, or at the next one that is free unless it has to be this one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    last: OSError | None = None
    for number in range(port, port + (1 if exactly or port == 0 else TRIED)):
        server = socket.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((host, number))
            server.listen(128)
            return server
        except OSError as error:
            server.close()
            last = error
    raise UserError(f"{host} cannot be listened on at port {port}: {last}; give another --port")


def address(host: str, server: socket.socket, token: str) -> str:
    """What to open: with the token where others can reach the server."""
    port = server.getsockname()[1]
    shown = f"[{host}]" if ":" in host else socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"http://{shown}:{port}/" + ("" if guard.is_loopback(host) else f"?token={token}")


def serve(
    root: Path,
    server: socket.socket,
    host: str,
    token: str,
    names: Sequence[str] = (),
    webhook: str | None = None,
    ready: Callable[[], None] | None = None,
) -> None:
    """Until Ctrl-C. `ready` is called when the socket is open: who comes then waits until the application is made."""
    if ready is not None:
        ready()
    from relab.web.desk import Desk

    with _ended_by_exit(), closing(Desk()) as desk:
        desk.warm()  # beside the imports below
        import uvicorn

        from relab.web.app import made

        app = made(root, token, host, server.getsockname()[1], names, webhook, desk)
        config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False,
                                limit_concurrency=256, timeout_graceful_shutdown=2, timeout_keep_alive=20,
                                ws="none", lifespan="on")  # fmt: skip
        uvicorn.Server(config).run(sockets=[server])


@contextmanager
def _ended_by_exit() -> Iterator[None]:
    """SIGTERM ends Python in order: uvicorn, once it has closed, raises the signal again, and its plain meaning would
    leave the semaphores of the examining process to a tracker that complains about them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
