"""Runs and a board that every test of this room may use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import farshift as fs
import postgres
import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.submission.pack import pack_runs
from fuzz.kept import KeptReader
from fuzz.packing import Parts, parts
from made_runs import three_runs
from remembering import remembering


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> list[Path]:
    """Three runs: two models on one benchmark, one on another."""
    return three_runs(tmp_path_factory.mktemp("runs"))


class SharedReader(KeptReader):
    """One reader for all that is packed or validated in this process, by one thread at a time."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.Lock()

    def __enter__(self) -> SharedReader:
        self._turn.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
        self._turn.release()


@pytest.fixture(scope="session")
def shared_reader() -> Iterator[SharedReader]:
    reader = SharedReader()
    yield reader
    reader.end()


@pytest.fixture(autouse=True)
def _one_reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, shared_reader: SharedReader) -> None:
    """The reader does not start anew for each submission. How it starts and ends: test_validate_reader.py."""
    if request.path.parent == Path(__file__).parent:
        for user in ("pack", "validate"):
            monkeypatch.setattr(f"farshift.leaderboard.submission.{user}.Reader", lambda: shared_reader)


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
