"""Real servers on loopback, in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import uvicorn
from farshift.leaderboard.server.app import create_app

PATIENCE = 120


@contextmanager
def serving_app(app: Any, **options: Any) -> Iterator[str]:
    """The address of an application while the context lasts."""
    options = {"log_level": "critical", "lifespan": "off", "timeout_graceful_shutdown": 1} | options
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


def find_free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@dataclass
class Running:
    """A server of a board: its address, its application, and a client of it."""

    url: str = ""
    app: Any = None
    client: Any = None
    stack: ExitStack = field(default_factory=ExitStack)

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return self.client.get(f"{self.url}/{path.lstrip('/')}", **options)

    def json(self, path: str, **parameters: Any) -> Any:
        answer = self.get(f"api/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until(self, fact: Any) -> None:
        """Wait until something holds; what is computed in the background takes its time."""
        deadline = time.monotonic() + PATIENCE
        while not fact():
            assert time.monotonic() < deadline, "it never came to hold"
            time.sleep(0.05)

    def stop(self) -> None:
        self.stack.close()


def running(place: object, **options: Any) -> Running:
    result = Running(app=create_app(str(place), **options))
    result.url = result.stack.enter_context(serving_app(result.app, lifespan="on", proxy_headers=False))
    result.client = result.stack.enter_context(httpx2.Client(timeout=PATIENCE))
    return result
