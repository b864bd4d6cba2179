"""Two servers and three workers of one board, clients that hand in at once, and kill -9 of workers and of a server in
the middle of it.

    python swarm.py serve BOARD PORT
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from hashlib import sha256
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import httpx2
import tomli_w
from farshift.leaderboard.board import Board
from farshift.leaderboard.server.accounts import create_token
from farshift.leaderboard.server.queue import Queue
from farshift.leaderboard.settings import read_server_settings

SETTINGS = {
    "workers": 0,
    "submissions_a_day": 100_000,
    "bytes_a_day": 1 << 40,
    "queued_at_once": 100_000,
    "lease_seconds": 10.0,
    "attempts": 10,
}
LONGEST = 3600.0
"""Seconds after which something hangs."""


def serve(board: str, port: int) -> None:
    import uvicorn
    from farshift.leaderboard.server import submissions
    from farshift.leaderboard.server.app import add_error_handlers
    from farshift.leaderboard.server.submissions import open_state
    from fastapi import FastAPI

    app = FastAPI()
    app.state.intake = open_state(Board(board))
    app.include_router(submissions.router, prefix="/api/v1")
    add_error_handlers(app)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


class Swarm:
    """A board with its processes. Use as a context: they are gone at the end."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.board = Board.init(folder / "board", "a busy board", url)
        (self.board.path / "settings.toml").write_text(tomli_w.dumps({"server": SETTINGS}))
        self.token, _ = create_token(self.board.ledger.store, "us")
        self.queue = Queue(self.board.ledger.store, read_server_settings(self.board.path))
        self.ports = [_free_port() for _ in range(2)]
        self.commands = [[sys.executable, __file__, "serve", str(self.board.path), str(port)] for port in self.ports]
        self.commands += [[sys.executable, "-m", "farshift", "board", "work", str(self.board.path)]] * 3
        self.processes: list[subprocess.Popen[bytes]] = []
        self.acknowledged: dict[str, str] = {}
        self.seconds: list[float] = []
        self.kills: Counter[str] = Counter()

    def __enter__(self) -> Swarm:
        self.processes = [_started(command) for command in self.commands]
        for port in self.ports:
            self.wait_for(lambda: _listens(port))  # noqa: B023
        return self

    def __exit__(self, *_: Any) -> None:
        for process in self.processes:
            process.terminate()  # what its own processes used is counted where it waits for them
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kill(self, number: int) -> None:
        """Kill a process (0 and 1 are servers) without a warning, and start another in its place."""
        self.processes[number].send_signal(signal.SIGKILL)
        self.processes[number].wait()
        self.kills["servers" if number < 2 else "workers"] += 1
        self.processes[number] = _started(self.commands[number])

    def hand_in(self, files: list[Path], clients: int) -> list[threading.Thread]:
        """Begin to hand files in, by so many clients at once, each to one of the servers, until all are taken."""
        left: SimpleQueue[Path] = SimpleQueue()
        for file in files:
            left.put(file)

        def client(number: int) -> None:
            position = f"http://127.0.0.1:{self.ports[number % 2]}/api/v1/submissions"
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/zip"}
            while True:
                try:
                    file = left.get_nowait()
                except Empty:
                    return
                content, began = file.read_bytes(), time.monotonic()
                while True:
                    try:
                        answer = httpx2.post(position, content=content, headers=headers, timeout=60)
                    except httpx2.TransportError:  # the server is gone for a while
                        time.sleep(0.2)
                        continue
                    if answer.status_code in (200, 202):
                        break
                    assert answer.status_code >= 500, answer.text
                    time.sleep(0.2)
                self.seconds.append(time.monotonic() - began)
                self.acknowledged[sha256(content).hexdigest()] = answer.json()["id"]

        threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(clients)]
        for thread in threads:
            thread.start()
        return threads

    def wait_for(self, reached: Any) -> None:
        """Until something holds."""
        until = time.monotonic() + LONGEST
        while not reached():
            assert time.monotonic() < until, self.queue.counts()
            time.sleep(0.1)

    def ended(self) -> int:
        """How many submissions have ended."""
        counts = self.queue.counts()
        return counts["entered"] + counts["refused"] + counts["failed"]


def killed_while_working(swarm: Swarm, files: list[Path], clients: int) -> dict[str, Any]:
    """Hand files in while three workers and a server are killed, spread over the time that it takes; what came of it."""
    began, every = time.monotonic(), len(files)
    threads = swarm.hand_in(files, clients)
    swarm.wait_for(lambda: len(swarm.acknowledged) >= every // 2)
    swarm.kill(0)
    for worker in (2, 3, 4):
        swarm.wait_for(lambda: swarm.ended() >= min(every - 1, every * worker // 6))  # noqa: B023
        swarm.kill(worker)
    for thread in threads:
        thread.join(LONGEST)
    accepted = time.monotonic() - began
    swarm.wait_for(lambda: swarm.ended() >= every)
    jobs = swarm.queue.jobs()
    entered = Counter(r.body["submission"] for r in swarm.board.ledger.records() if r.kind == "submitted")
    seconds = sorted(swarm.seconds)
    assert set(swarm.acknowledged) == set(entered), "one that was acknowledged is lost"
    assert set(entered.values()) == {1}, "one was entered twice"
    assert {job.state for job in jobs} == {"entered"}
    assert {job.digest: job.id for job in jobs} == swarm.acknowledged
    return {
        "submissions": every,
        "kills": dict(swarm.kills),
        "attempts": sum(job.attempts for job in jobs),
        "acknowledged_within_s": {"median": seconds[every // 2], "p95": seconds[int(every * 0.95)], "all": accepted},
        "entered_within_s": time.monotonic() - began,
    }


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))


def _listens(port: int) -> bool:
    with socket.socket() as line:
        return line.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    serve(sys.argv[2], int(sys.argv[3]))
