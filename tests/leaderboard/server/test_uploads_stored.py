"""Submissions to a board whose files lie in an object store: any machine takes them in, and any scores them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import s3
from farshift.core.errors import Unavailable
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.verify import verify_board
from farshift.leaderboard.server.files import UploadFiles, sweep_files
from intake import score_here, taking_in

pytestmark = [pytest.mark.usefixtures("remembered"), pytest.mark.slow]


@pytest.fixture(scope="module")
def stores() -> Iterator[s3.Stores]:
    with s3.storing() as running:
        yield running


def another_machine(board: Board, folder: Path) -> Board:
    """The same board from a folder of its own: the card, what is private and, in place of a database server, the
    ledger."""
    folder.mkdir()
    shutil.copy(board.path / "board.toml", folder)
    shutil.copytree(board.path / "private", folder / "private")
    if board.ledger.store.dialect == "sqlite":
        (folder / "ledger.sqlite").symlink_to(board.path / "ledger.sqlite")
    return Board(folder)


def uploads(stores: s3.Stores, board: Board) -> list[str]:
    assert board.objects is not None
    return [path for path in stores.files(board.objects.url) if path.startswith("uploads/")]


@pytest.mark.parametrize("where", ["sqlite", "postgresql"])
def test_what_one_server_took_in_another_knows_and_scores(where, stores, file, request, tmp_path):
    url = request.getfixturevalue("server").database() if where == "postgresql" else None
    here = Board.init(tmp_path / "here", "shared", url, stores.bucket())
    there = another_machine(here, tmp_path / "there")
    with taking_in(here, score_here) as item, taking_in(there, score_here) as two:
        id = item.post(file.read_bytes()).json()["id"]
        again = two.post(file.read_bytes(), item.token)
        assert (again.status_code, again.json()["id"]) == (200, id)
        assert uploads(stores, here) == [f"uploads/whole/{id}.zip"]
        other = two.post(b"no zip", item.token).json()["id"]
        shutil.rmtree(here.path / "uploads")  # the machine that took it in is gone
        assert two.work() == 2
        assert [item.get(one).json()["state"] for one in (id, other)] == ["entered", "refused"]
        assert uploads(stores, here) == []
    result = verify_board(there)
    assert (result.verified, result.differences) == (1, [])


def test_what_nobody_needs_is_swept_from_the_store_an_hour_after_it_was_seen(stores, tmp_path, monkeypatch):
    board = Board.init(tmp_path / "board", "shared", files=stores.bucket())
    with taking_in(board, score_here) as intake:
        stored = intake.post(b"queued").json()["id"]
        left = "ab" * 32
        intake.state.files.objects.put(f"whole/{left}.zip", b"of a server that was killed")
        there = uploads(stores, board)
        sweep_files(intake.state.queue, intake.state.files)
        assert uploads(stores, board) == there
        monkeypatch.setattr("farshift.leaderboard.server.files._HOUR", -1.0)
        sweep_files(intake.state.queue, intake.state.files)
        assert uploads(stores, board) == [f"uploads/whole/{stored}.zip"]


def test_a_store_that_is_away_costs_a_submission_no_attempt(stores, file, tmp_path, monkeypatch):
    board = Board.init(tmp_path / "board", "shared", files=stores.bucket())
    with taking_in(board, score_here) as intake:
        id = intake.post(file.read_bytes()).json()["id"]
        shutil.rmtree(board.path / "uploads")
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        intake.worker.files = UploadFiles(Board(board.path))
        monkeypatch.setattr("farshift.leaderboard.server.worker.sweep_files", lambda *_: None)
        with pytest.raises(Unavailable):
            intake.work()
        job = intake.state.queue.find(id)
        assert (job.state, job.attempts) == ("queued", 0)
        monkeypatch.undo()
