"""Serve a board with server and worker processes on one machine, which are restarted when they die and stop
together."""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event
from types import FrameType

from ...core.engines import THREADS
from ...core.errors import FarshiftError, MissingExtra
from .app import API

log = logging.getLogger("farshift.server")

TICK = 0.2
PAUSES = (1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds before a dead process is restarted, by the number of consecutive deaths."""
LIVED = 60.0
"""A process that lived this many seconds before it died is not counted as a consecutive death."""
ENDING = 40.0
"""Seconds that processes get to finish their work when the board stops."""


@dataclass
class ManagedProcess:
    """A process that is kept running while the board is served."""

    name: str
    command: Sequence[str]
    fd: int | None = None
    process: subprocess.Popen[bytes] | None = None
    since: float = 0.0
    deaths: int = 0
    due: float = field(default=0.0)

    def start(self) -> None:
        # A separate process group: Ctrl-C in a terminal reaches only this process, which stops the others in order.
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,  # closes when this process ends for any reason
            pass_fds=() if self.fd is None else (self.fd,),
            process_group=0,
            # There is one process per core, so NumPy's threads would compete for cores. A value that is already set in
            # the environment stays.
            env=dict.fromkeys(THREADS, "1") | os.environ,
        )
        self.since = time.monotonic()

    def look(self) -> None:
        """Restart the process if it died and its pause is over."""
        assert self.process is not None
        if self.due:
            if time.monotonic() >= self.due:
                self.due = 0.0
                self.start()
            return
        code = self.process.poll()
        if code is None:
            return
        self.deaths = 0 if time.monotonic() - self.since > LIVED else self.deaths
        pause = PAUSES[min(self.deaths, len(PAUSES) - 1)]
        self.deaths, self.due = self.deaths + 1, time.monotonic() + pause
        log.warning("%s ended (%s): restarting it in %.0f s", self.name, _describe_exit(code), pause)

    def tell(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)


def serve_board(
    location: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    servers: int = 1,
    workers: int = 0,
    url_prefix: str = "",
    proxy_headers: bool = False,
    on_ready: Callable[[str], None] = print,
) -> None:
    """Serve the board at a location until SIGINT or SIGTERM. `on_ready` is called with the address once it responds.

    servers: number of server processes; workers: how many submissions are scored at once, none for a copy of a board;
    url_prefix: as in `create_app`; proxy_headers: whether to trust forwarded client addresses from a proxy on this
    machine (or from those that FORWARDED_ALLOW_IPS names). Raises `FarshiftError` if the port is unavailable or the
    server does not start."""
    try:
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra("the board's server", "server") from error
    with open_listening_socket(host, port) as line:
        fd = line.fileno()
        options = {"place": location, "fd": fd, "url_prefix": url_prefix, "proxy_headers": proxy_headers}
        package = __package__ or ""
        children = [
            ManagedProcess(f"server {number}", [sys.executable, "-m", f"{package}.process", json.dumps(options)], fd)
            for number in range(1, servers + 1)
        ]
        if workers:
            command = [
                sys.executable,
                "-m",
                package.split(".")[0],
                "board",
                "work",
                location,
                "--workers",
                str(workers),
            ]
            children.append(ManagedProcess("the worker", command))
        stop = Event()
        before = {number: signal.signal(number, _make_stop_handler(stop)) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            for child in children:
                child.start()
            where = line.getsockname()
            if _wait_until_ready(where, children[0], stop):
                shown = f"[{where[0]}]" if ":" in where[0] else where[0]
                on_ready(f"http://{shown}:{where[1]}/{url_prefix.strip('/') + '/' if url_prefix.strip('/') else ''}")
            while not stop.wait(TICK):
                for child in children:
                    child.look()
        finally:
            _end_processes(children)
            for number, handler in before.items():
                signal.signal(number, handler)


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket with TCP_NODELAY: otherwise the body of a response waits until the client acknowledges
    the headers, which takes up to 40 ms."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server_socket = socket.create_server((host, port), family=family, backlog=1024)
        # Accepted connections inherit the option. asyncio sets it only if the socket states its protocol, which this
        # socket does not, and a socket from a descriptor does only on Linux.
        server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return server_socket
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise FarshiftError(f"{host}, port {port}: {why}: choose another (--host, --port)") from error


def _make_stop_handler(stop: Event) -> Callable[[int, FrameType | None], None]:
    def handler(number: int, frame: FrameType | None) -> None:
        stop.set()

    return handler


def _wait_until_ready(where: tuple[str, int], server: ManagedProcess, stop: Event) -> bool:
    """Wait until a server responds; return False if it is stopped before."""
    while not stop.wait(TICK / 2):
        assert server.process is not None
        if server.process.poll() is not None:
            raise FarshiftError(
                f"the server did not start ({_describe_exit(server.process.returncode)}): see its message above"
            )
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(where[0], where[0])
        connection = http.client.HTTPConnection(host, where[1], timeout=5)
        try:
            connection.request("GET", f"{API}/healthz")
            if connection.getresponse().status == 200:
                return True
        except (OSError, http.client.HTTPException):
            continue
        finally:
            connection.close()
    return False


def _end_processes(children: Sequence[ManagedProcess]) -> None:
    """Stop all started processes by id, and kill those that do not stop in time."""
    for child in children:
        child.tell(signal.SIGTERM)
    deadline = time.monotonic() + ENDING
    for child in children:
        if child.process is None:
            continue
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()
        if child.process.stdin is not None:
            child.process.stdin.close()


def _describe_exit(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
