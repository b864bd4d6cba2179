"""Submitting where something is in the way: others with the same file, a limit on files, a disk that may only be read."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from farshift import FarshiftError
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations import submit as submitting
from farshift.leaderboard.operations.submit import submit_runs, withdraw_entry
from farshift.leaderboard.operations.verify import verify_at
from farshift.leaderboard.server.accounts import create_token
from farshift.leaderboard.storage.readers import open_board_view
from farshift.leaderboard.submission.pack import pack_runs
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
def test_a_board_that_may_only_be_read_is_read(board, file, runs, tmp_path, remembered, cache, request):
    other = pack_runs(runs[1:2], tmp_path / "other.zip", team="others")
    submit_runs(board, file)
    before = sorted(board.path.rglob("*"))
    request.getfixturevalue("read_only")
    assert verify_at(str(board.path)).is_complete
    with open_board_view(str(board.path)) as view:
        assert len(take_snapshot(view).views[0].rows) == 1
    for change in (
        lambda: submit_runs(board, other),
        lambda: withdraw_entry(board, board.standings()[0].entry, "a bug"),
        lambda: create_token(board.ledger.store, "us"),
    ):
        with pytest.raises(FarshiftError, match="ledger.sqlite may only be read by this user: repeat the command as"):
            change()
    assert sorted(board.path.rglob("*")) == before


@pytest.mark.attack("disk", "changed bytes in the verifier's cache, for which the board must not be blamed")
def test_labels_that_a_disk_changed_in_the_cache_accuse_no_board(runs, cache, tmp_path, farshift):
    """The attack: other labels under an equal size and time, by which the entry's score would be another."""
    board = Board.init(tmp_path / "board", "A test board")
    submit_runs(board, pack_runs(runs[:1], tmp_path / "s.zip", team="us"))
    (path,) = (cache / "sources").glob("modadd97*.arrow")
    right, state = path.read_bytes(), path.stat()
    wrong = bytearray(right)
    wrong[len(wrong) // 4 : 3 * len(wrong) // 4 : 8] = bytes(len(range(len(wrong) // 4, 3 * len(wrong) // 4, 8)))
    path.write_bytes(wrong)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert path.read_bytes() != right
    done = farshift("board", "verify", str(board.path), FARSHIFT_CACHE=str(cache))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{path.name} is truncated or modified: building it again" in " ".join(done.stderr.split())
    assert path.read_bytes() == right
