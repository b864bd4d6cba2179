"""Submitting where something is in the way: others with the same file, a limit on files, a disk that may only be read."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations import submit as submitting
from farshift.leaderboard.operations.locations import open_board_view, verify_at
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.tables.snapshot import take_snapshot
from support import one_line_error


@pytest.mark.attack("entrant", "one file submitted three times at once")
def test_the_same_file_from_three_at_once_gives_all_three_the_same_entries(board, file, remembered, monkeypatch):
    together, real = Barrier(3), submitting.score_entry

    def slowly(entry):
        together.wait(60)  # all three have seen a board without it
        return real(entry)

    monkeypatch.setattr(submitting, "score_entry", slowly)
    with ThreadPoolExecutor(3) as pool:
        result = list(pool.map(lambda _: submit_runs(Board(board.path), file), range(3)))
    assert sorted(new for _, new in result) == [False, False, True]
    assert result[0][0] == result[1][0] == result[2][0]
    assert len(board.records()) == 3


@pytest.mark.attack("host", "a limit on file sizes (ulimit -f)")
@pytest.mark.slow
@pytest.mark.parametrize("blocks", [8, 40])
def test_a_limit_on_the_size_of_files_is_told_in_a_line_and_loses_nothing(board, file, blocks):
    command = f'ulimit -f {blocks}; exec "$0" -m farshift submit "$1" --to "$2"'
    done = subprocess.run(
        ["bash", "-c", command, sys.executable, str(file), str(board.path)], capture_output=True, text=True
    )
    assert "File too large" in one_line_error(done)
    assert verify_at(str(board.path)).is_complete
    assert len(board.records()) == 1
    assert not any((board.path / "incoming").glob("*"))
    assert submit_runs(board, file)[1]


@pytest.fixture
def read_only(board, monkeypatch):
    """A board's folder that this process may not write to, whoever it runs as."""
    real = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: real(path, mode) and not (mode & os.W_OK and path == board.path)
    )
    board.path.chmod(0o555)
    yield board
    board.path.chmod(0o755)


@pytest.mark.attack("disk", "a read-only board")
def test_a_board_that_may_only_be_read_is_read(board, file, remembered, cache, monkeypatch, request):
    submit_runs(board, file)
    before = sorted(board.path.rglob("*"))
    request.getfixturevalue("read_only")
    assert verify_at(str(board.path)).is_complete
    with open_board_view(str(board.path)) as view:
        assert len(take_snapshot(view).views[0].rows) == 1
    assert sorted(board.path.rglob("*")) == before
