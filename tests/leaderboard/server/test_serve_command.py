"""`farshift board serve` as it is called: real processes, killed and ended."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

PATIENCE = 180
COMMAND = [sys.executable, "-m", "farshift", "board", "serve"]


class Served:
    """A running command: the address that it printed, and what it logged."""

    def __init__(self, place: Path, log: Path, *options: str, files: int = 1024) -> None:
        self.log = log
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *COMMAND, str(place), "--port", "0", *options]
        with log.open("wb") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        result = re.search(r"http://\S+", self.said)
        assert result, (self.said, log.read_text())
        self.url = result[0].rstrip("/")

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(f"{self.url}/{path}", headers=headers, timeout=PATIENCE)

    def children(self) -> list[int]:
        """The ids of the processes that it started."""
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(item) for item in task.read_text().split()]

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def command(tmp_path) -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def start(place: Path, *options: str, **limits: int) -> Served:
        started.append(Served(place, tmp_path / f"log{len(started)}", *options, **limits))
        return started[-1]

    yield start
    for item in started:
        if item.process.poll() is None:
            item.end(signal.SIGTERM)


def until(fact: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.1)


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the processes of another are read from /proc")
def test_servers_are_started_again_when_they_die_and_all_end_with_ctrl_c(own, command):
    served = command(own.path, "--workers", "0", "--servers", "2")
    assert "is served at" in served.said
    assert "<!doctype html>" in served.get("").text
    children = served.children()
    assert len(children) >= 2
    os.kill(children[-1], signal.SIGKILL)  # the first one is the resource tracker of multiprocessing
    until(lambda: len(set(served.children()) - set(children)) >= 1)
    assert served.get("api/v1/healthz").status_code == 200
    assert "died" in served.log.read_text()
    before = served.children()
    assert served.end() == 0
    until(lambda: not any(alive(item) for item in before))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the processes of another are read from /proc")
def test_no_process_outlives_one_that_is_killed(own, command):
    served = command(own.path, "--workers", "1", "--servers", "2")
    assert served.get("api/v1/healthz").status_code == 200
    children = served.children()
    served.process.kill()
    served.process.wait()
    until(lambda: not any(alive(child) for child in children))


@pytest.mark.slow
def test_a_request_is_one_line_of_the_log_without_secrets(own, command):
    served = command(own.path, "--workers", "0")
    served.get("api/v1/entries?token=SECRET1", Authorization="Bearer SECRET2", Cookie="SECRET3")
    served.get("nothing%0Ahere%1b[31m")
    assert served.end(signal.SIGTERM) == 0
    log = served.log.read_text()
    assert "SECRET" not in log
    assert len([line for line in log.splitlines() if "GET /api/v1/entries 200" in line]) == 1
    assert "\x1b" not in log
    assert not any(line.startswith("here") for line in log.splitlines())


def connect(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), PATIENCE)


@pytest.mark.slow
@pytest.mark.attack("visitor", "many connections that send nothing")
def test_a_page_is_shown_beside_more_silent_connections_than_open_files(own, command):
    served = command(own.path, "--workers", "0", files=200)
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(connect(served))
        assert served.get("healthz").status_code == 200
    assert len(served.log.read_text().splitlines()) < 20
