"""Workers as processes: what was acknowledged is scored once, whoever is killed."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import farshift as fs
import models
import pytest
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.server.files import UploadFiles
from farshift.leaderboard.server.queue import Queue
from farshift.leaderboard.server.worker import Worker
from farshift.leaderboard.settings import ServerSettings
from farshift.leaderboard.submission.pack import pack_runs
from swarm import Swarm, killed_while_working

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> list[Path]:
    """A dozen submissions."""
    folder, packed = tmp_path_factory.mktemp("many"), []
    for number in range(12):
        out = folder / f"run{number}"
        fs.evaluate(lambda seed, n=number: models.Adder(seed, 0.05 * n), on=ON, seeds=1, out=out, name=f"m{number}")
        packed.append(pack_runs([out], folder / f"{number}.zip", team="us"))
    return packed


@pytest.mark.slow
@pytest.mark.attack("disk", "kill -9 of workers and of a server during submissions")
@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_what_was_acknowledged_is_entered_once_though_workers_and_a_server_are_killed(where, many, request, tmp_path):
    url = request.getfixturevalue("server").database() if where == "postgresql" else None
    with Swarm(tmp_path, url) as swarm:
        result = killed_while_working(swarm, many, clients=4)
    assert result["kills"] == {"servers": 1, "workers": 3}
    full = verify_board(swarm.board)
    assert full.differences == [] == full.not_recomputed


@pytest.mark.slow
def test_a_process_that_breaks_hangs_or_needs_too_much_is_an_attempt_that_failed(board, many):
    for settings, why in (
        (ServerSettings(attempts=1, scoring_seconds=0.01), "scoring took more than 0.01 s"),
        (ServerSettings(attempts=1, scoring_bytes=1 << 27), "the scoring process ended with|more memory"),
    ):
        queue, files = Queue(board.ledger.store, settings), UploadFiles(board.path)
        id = files.new()
        files.part(id).write_bytes(many[0].read_bytes())
        files.finish(id)
        queue.enqueue(id, "team us", f"{why[:8]}", 1, team="us", token="t")
        assert Worker(board, queue).run(threading.Event(), once=True) == 1
        job = queue.find(id)
        assert job.state == "failed"
        assert re.search(why, job.reason), job.reason
    assert board.standings() == []
