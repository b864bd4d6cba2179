"""Whatever a disk or a stranger makes of a file of a run or an export: it is named, or scored as it stands; no crash."""

from __future__ import annotations

import shutil
from pathlib import Path

import farshift as fs
import pytest
from farshift import read_run
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.export import export_board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.submission.pack import pack_runs
from fuzz.folders import bound, failures, few_and_many, verified
from remembering import remembering

pytestmark = pytest.mark.attack("disk", "hundreds of damaged files of runs and exports")


@pytest.fixture(scope="module")
def exported(runs, tmp_path_factory) -> Path:
    """An export of a board with two entries."""
    folder = tmp_path_factory.mktemp("exported")
    board = Board.init(folder / "board", "A board")
    submit_runs(board, pack_runs(runs[:2], folder / "s.zip", team="us"))
    return export_board(board, folder / "export").out


@few_and_many(12, 6)
def test_damaged_exports_are_named(exported, cases, name):
    full = bound(exported)
    with remembering():
        failed, seen = failures(exported, cases, name, lambda: verified(exported, full))
    assert failed == {}
    assert {"named", "refused", "says the same"} >= seen >= {"named"}


@few_and_many(25, 3)
def test_damaged_runs_are_scored_or_refused(runs, tmp_path, cases, name):
    position = shutil.copytree(runs[0], tmp_path / "run")
    failed, seen = failures(position, cases, name, lambda: f"scored {fs.score(read_run(position)).metric}")
    assert failed == {}
    assert "refused" in seen
