"""Runs and a board that every test of this room may use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import farshift as fs
import pytest
from farshift.leaderboard.board import Board
from fuzz.packing import Parts, parts

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import postgres
from made_runs import three_runs
from remembering import remembering


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> list[Path]:
    """Three runs: two models on one benchmark, one on another."""
    return three_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of each test's own: copies of one board go different ways, and a home remembers what it has seen."""
    monkeypatch.setenv("FARSHIFT_HOME", str(tmp_path / "home"))


@pytest.fixture
def board(tmp_path) -> Board:
    return Board.init(tmp_path / "board", "A test board")


@pytest.fixture(scope="session")
def good(runs: list[Path]) -> Parts:
    """The parts of a submission that validates."""
    return parts(fs.read_run(runs[0]))


@pytest.fixture
def remembered() -> Iterator[None]:
    """The same bytes are validated and scored once: pure functions, which are tested elsewhere."""
    with remembering():
        yield


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL server; tests that need one are skipped where none can be started."""
    if reason := postgres.why_not():
        pytest.skip(reason)
    with postgres.serving() as running:
        yield running
