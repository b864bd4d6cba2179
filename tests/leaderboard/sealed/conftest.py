"""What the tests of sealed draws share: the coins benchmark, packed answers of three teams to one draw, and boards."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from farshift.benchmarks.benchmark import Benchmark, find_benchmark
from farshift.leaderboard.board import Board
from farshift.leaderboard.sealed import seal as sealing
from farshift.leaderboard.sealed import submit as collecting
from farshift.leaderboard.sealed import verify as verifying
from farshift.leaderboard.sealed.drawing import draw_sealed_rows
from farshift.leaderboard.sealed.seal import close_window
from farshift.leaderboard.sealed.submit import check_answers, submit_answers
from fuzz.kept import KeptReader, reading_with
from sealed_cases import CLOSES, ON, OPENS, WINDOW, Clock, Handed, answered, draw_folder, make_home, sealed


@pytest.fixture(scope="session")
def coins_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the coins benchmark, made once."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(home))
        return make_home(home)


@pytest.fixture(scope="module")
def coins(coins_home: Path) -> Iterator[Path]:
    """The home of the coins benchmark, named in FARSHIFT_PATH."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(coins_home))
        yield coins_home


@pytest.fixture(scope="session")
def answers(coins_home: Path, reader: KeptReader, tmp_path_factory: pytest.TempPathFactory) -> Handed:
    """Answers to the draw of the fixed seed: of two honest teams, and of one that knows the published test by heart."""
    base = tmp_path_factory.mktemp("handed")
    with pytest.MonkeyPatch.context() as patch, reading_with(reader):
        patch.setenv("FARSHIFT_PATH", str(coins_home))
        board = Board.init(base / "board", "Where the draw comes from")
        folder = draw_folder(board, sealed(board, Clock(OPENS)))
        known: dict[str, int] = {}
        for view in ("id", "ood"):
            part, truth = find_benchmark(ON).view(view)
            known |= dict(zip(part.numpy(["coins"])["coins"].tolist(), truth.tolist(), strict=True))
        teams = {"ann": None, "bob": None, "cheat": known}
        return Handed(folder, {team: answered(folder, base, team, by_heart) for team, by_heart in teams.items()})


@pytest.fixture(scope="module")
def handed(coins: Path, answers: Handed) -> Handed:
    """Those answers, with the benchmark named in FARSHIFT_PATH."""
    return answers


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock at the opening of the window, which the ledger, commands and servers go by too."""
    built = Clock(OPENS)

    class Set(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return built()

    monkeypatch.setattr("farshift.leaderboard.sealed.window.datetime", Set)
    monkeypatch.setattr("farshift.leaderboard.ledger.book.get_utc_now", built.written)
    return built


@pytest.fixture(scope="session")
def announced(coins_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a board with a window that has just opened."""
    clock = Clock(OPENS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(coins_home))
        patch.setattr("farshift.leaderboard.ledger.book.get_utc_now", clock.written)
        built = Board.init(tmp_path_factory.mktemp("announced") / "board", "A board of windows")
        sealed(built, clock)
    return built.path


@pytest.fixture
def board(announced: Path, coins: Path, clock: Clock, tmp_path: Path) -> Board:
    """A copy of that board."""
    return Board(shutil.copytree(announced, tmp_path / "board"))


@pytest.fixture
def opened(board: Board, clock: Clock) -> Board:
    """A board whose window has been open for a minute."""
    clock.set(OPENS, seconds=60)
    return board


@pytest.fixture(scope="session")
def over(
    answers: Handed,
    announced: Path,
    coins_home: Path,
    reader: KeptReader,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The folder of a board whose window had three teams and is over."""
    clock = Clock(OPENS)
    with pytest.MonkeyPatch.context() as patch, reading_with(reader):
        patch.setenv("FARSHIFT_PATH", str(coins_home))
        patch.setattr("farshift.leaderboard.ledger.book.get_utc_now", clock.written)
        built = Board(shutil.copytree(announced, tmp_path_factory.mktemp("over") / "board"))
        clock.set(OPENS, seconds=60)
        for file in answers.answers.values():
            submit_answers(built, WINDOW, file, clock=clock)
        clock.set(CLOSES, seconds=1)
        close_window(built, WINDOW, clock)
    return built.path


@pytest.fixture
def revealed(over: Path, coins: Path, tmp_path: Path) -> Board:
    """A copy of that board."""
    return Board(shutil.copytree(over, tmp_path / "revealed"))


_READ: dict[Any, Any] = {}
_DRAWN: dict[Any, Any] = {}


@pytest.fixture
def decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answers to the same window are decoded once, and the same seed drawn once: both are pure, and tested
    elsewhere."""

    def check(file: Path | str, against: Any) -> Any:
        key = (Path(file).read_bytes(), against.draw.commitment, against.drawn is None)
        if key not in _READ:
            _READ[key] = check_answers(file, against)
        return _READ[key]

    def drawn(benchmark: Benchmark, seed: bytes) -> Any:
        key = (benchmark.manifest.identity, seed)
        if key not in _DRAWN:
            _DRAWN[key] = draw_sealed_rows(benchmark, seed)
        return _DRAWN[key]

    for user in (collecting, sealing, verifying):
        monkeypatch.setattr(user, "check_answers", check)
    for user in (sealing, verifying):
        monkeypatch.setattr(user, "draw_sealed_rows", drawn)
