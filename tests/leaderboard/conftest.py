"""Runs and a board that every test of this room may use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import farshift as fs
import postgres
import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.submission.pack import pack_runs
from fuzz.kept import KeptReader, reading_with
from fuzz.packing import Parts, parts
from made_runs import three_runs
from remembering import remembering


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> list[Path]:
    """Three runs: two models on one benchmark, one on another."""
    return three_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def reader() -> Iterator[KeptReader]:
    """One process that reads every submission which this one packs or validates."""
    with KeptReader() as started:
        yield started


@pytest.fixture(autouse=True)
def _read_by_one_process(reader: KeptReader) -> Iterator[None]:
    """How a reader starts and ends: test_validate_reader.py."""
    with reading_with(reader):
        yield


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


@pytest.fixture(scope="session")
def file(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission of one run by team us."""
    return pack_runs(runs[:1], tmp_path_factory.mktemp("packed") / "s.zip", team="us")


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
