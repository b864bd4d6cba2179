"""Real servers on loopback, in a thread of the test."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from typing import Any

import httpx2
import uvicorn
from farshift.leaderboard.server.app import create_app

PATIENCE = 120


@dataclass
class Running:
    """A server: its address, its application, and a client of it."""

    url: str
    app: Any
    client: httpx2.Client
    server: uvicorn.Server
    thread: threading.Thread

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
        self.client.close()
        self.server.should_exit = True
        self.thread.join(PATIENCE)


def running(place: object, **options: Any) -> Running:
    app = create_app(str(place), **options)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="error", lifespan="on", proxy_headers=False, timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    result = Running(
        f"http://127.0.0.1:{listening.getsockname()[1]}", app, httpx2.Client(timeout=PATIENCE), server, thread
    )
    result.until(lambda: server.started or not thread.is_alive())
    assert server.started, "the server did not start"
    return result
