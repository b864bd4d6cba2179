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
from fuzz.folders import CASES, bound, failures, verified
from remembering import remembering

pytestmark = pytest.mark.attack("disk", "hundreds of damaged files of runs and exports")


@pytest.fixture(scope="module")
def exported(runs, tmp_path_factory) -> Path:
    """An export of a board with two entries."""
    folder = tmp_path_factory.mktemp("exported")
    board = Board.init(folder / "board", "A board")
    submit_runs(board, pack_runs(runs[:2], folder / "s.zip", team="us"))
    return export_board(board, folder / "export").out


def tried(exported: Path, cases: int, name: str) -> None:
    full = bound(exported)
    with remembering():
        failed, seen = failures(exported, cases, name, lambda: verified(exported, full))
    assert failed == {}
    assert {"named", "refused", "says the same"} >= seen >= {"named"}


def scored(folder: Path) -> str:
    return f"scored {fs.score(read_run(folder)).metric}"


def test_12_damaged_exports_are_named(exported):
    tried(exported, 12, "fast")


@pytest.mark.slow
def test_many_damaged_exports_are_named(exported):
    tried(exported, CASES // 6, "slow")


def of_runs(runs: list[Path], folder: Path, cases: int, name: str) -> None:
    position = shutil.copytree(runs[0], folder / "run")
    failed, seen = failures(position, cases, name, lambda: scored(position))
    assert failed == {}
    assert "refused" in seen


def test_25_damaged_runs_are_scored_or_refused(runs, tmp_path):
    of_runs(runs, tmp_path, 25, "fast")


@pytest.mark.slow
def test_many_damaged_runs_are_scored_or_refused(runs, tmp_path):
    of_runs(runs, tmp_path, CASES // 3, "slow")
