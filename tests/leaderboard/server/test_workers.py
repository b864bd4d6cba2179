"""Servers and workers as processes: what was acknowledged is scored once, whoever is killed."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import farshift as fs
import models
import pytest
import tomli_w
from farshift.core.errors import Unavailable
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.server.accounts import create_token
from farshift.leaderboard.server.files import UploadFiles
from farshift.leaderboard.server.queue import ENDED, Queue
from farshift.leaderboard.server.worker import Worker
from farshift.leaderboard.settings import ServerSettings
from farshift.leaderboard.submission.pack import pack_runs
from farshift.leaderboard.submission.remote import RemoteBoard
from running import find_free_port

ON = "modadd97/xi35"
SETTINGS = ServerSettings(workers=0, lease_seconds=10.0, attempts=10, queued_at_once=99)
LONGEST = 3600.0
"""Seconds after which something hangs."""


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> list[Path]:
    """A dozen submissions."""
    folder, packed = tmp_path_factory.mktemp("many"), []
    for number in range(12):
        out = folder / f"run{number}"
        fs.evaluate(lambda seed, n=number: models.Adder(seed, 0.05 * n), on=ON, seeds=1, out=out, name=f"m{number}")
        packed.append(pack_runs([out], folder / f"{number}.zip", team="us"))
    return packed


def wait_until(fact: Callable[[], object]) -> None:
    until = time.monotonic() + LONGEST
    while not fact():
        assert time.monotonic() < until, "it never came to hold"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.attack("disk", "kill -9 of workers and of a server during submissions")
@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_what_was_acknowledged_is_entered_once_though_workers_and_a_server_are_killed(where, many, request, tmp_path):
    url = request.getfixturevalue("server").database() if where == "postgresql" else None
    board, port = Board.init(tmp_path / "board", "a busy board", url), find_free_port()
    (board.path / "settings.toml").write_text(tomli_w.dumps({"server": SETTINGS.model_dump()}))
    remote = RemoteBoard(f"http://127.0.0.1:{port}", create_token(board.ledger.store, "us")[0])
    queue, files, acknowledged = Queue(board.ledger.store, SETTINGS), UploadFiles(board), list[str]()
    processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(name: str) -> None:
        options = ["serve", board.path, "--port", str(port)] if name == "server" else ["work", board.path]
        command = [sys.executable, "-m", "farshift", "board", *map(str, options)]
        processes[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(name: str) -> None:
        processes[name].kill()
        processes[name].wait()
        start(name)

    def hand_in(file: Path) -> None:
        while True:
            try:
                acknowledged.append(remote.send(file)["id"])
                return
            except Unavailable:  # the server is gone for a while
                pass

    def count_ended() -> int:
        for job in queue.jobs(("queued", "running")):
            assert files.complete_path(job.id).is_file() or queue.find(job.id).state in ENDED, "it lost its file"
        return sum(queue.counts()[state] for state in ENDED)

    for name in ("server", "worker 1", "worker 2"):
        start(name)
    try:
        with ThreadPoolExecutor(4) as clients:
            sent = [clients.submit(hand_in, file) for file in many]
            wait_until(lambda: len(acknowledged) >= 6)
            kill("server")
            for name, ended in (("worker 1", 3), ("worker 2", 7)):
                wait_until(lambda least=ended: count_ended() >= least)
                kill(name)
        for client in sent:
            client.result()
        wait_until(lambda: count_ended() >= len(many))
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait(60)
    jobs = queue.jobs()
    assert sorted(job.id for job in jobs) == sorted(acknowledged), "none that was acknowledged is lost"
    assert [(job.state, job.problems) for job in jobs if job.state != "entered"] == []
    entered = Counter(record.body["submission"] for record in board.ledger.records() if record.kind == "submitted")
    assert entered == Counter(job.digest for job in jobs)
    full = verify_board(board)
    assert full.differences == [] == full.not_recomputed


@pytest.mark.slow
def test_a_process_that_breaks_hangs_or_needs_too_much_is_an_attempt_that_failed(board, many):
    for settings, why in (
        (ServerSettings(attempts=1, scoring_seconds=0.01), "scoring took more than 0.01 s"),
        (ServerSettings(attempts=1, scoring_bytes=1 << 27), "the scoring process ended with|more memory"),
    ):
        queue, files = Queue(board.ledger.store, settings), UploadFiles(board)
        id = files.new()
        files.part(id).write_bytes(many[0].read_bytes())
        files.finish(id)
        queue.enqueue(id, "team us", f"{why[:8]}", 1, team="us", token="t")
        assert Worker(board, queue).run(threading.Event(), once=True) == 1
        job = queue.find(id)
        assert job.state == "failed"
        assert re.search(why, job.reason), job.reason
    assert board.standings() == []
