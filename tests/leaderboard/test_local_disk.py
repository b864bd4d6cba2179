"""A fault of the disk on which somebody verifies a board is no fault of the board."""

from __future__ import annotations

import os

import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.submission.pack import pack_runs


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
