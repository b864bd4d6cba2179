"""What the tests of sealed draws share: the coins benchmark, and packed answers of three teams to one draw."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.leaderboard.board import Board

sys.path.insert(0, str(Path(__file__).parent))
from sealed_cases import ON, OPENS, Clock, answered, draw_folder, make_home, sealed

_MADE: dict[str, Any] = {}
"""What is made once for all modules that import these fixtures."""


@pytest.fixture(scope="module")
def coins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of the coins benchmark, named in FARSHIFT_PATH."""
    with pytest.MonkeyPatch.context() as patch:
        home = _MADE.get("home") or tmp_path_factory.mktemp("home")
        patch.setenv("FARSHIFT_PATH", str(home))
        if "home" not in _MADE:
            _MADE["home"] = make_home(home)
        yield home


@dataclass(frozen=True)
class Handed:
    """A draw as it was handed out, and each team's answers to it."""

    draw: Path
    answers: dict[str, Path]


@pytest.fixture(scope="module")
def handed(coins: Path, tmp_path_factory: pytest.TempPathFactory) -> Handed:
    """Answers to the draw of the fixed seed: of two honest teams, and of one that knows the published test by heart."""
    if "handed" not in _MADE:
        _MADE["handed"] = _handed(tmp_path_factory.mktemp("handed"))
    made: Handed = _MADE["handed"]
    return made


def _handed(base: Path) -> Handed:
    board = Board.init(base / "board", "Where the draw comes from")
    draw = draw_folder(board, sealed(board, Clock("2030-12-31T00:00:00Z")))
    known: dict[str, int] = {}
    for view in ("id", "ood"):
        part, truth = find_benchmark(ON).view(view)
        known |= dict(zip(part.numpy(["coins"])["coins"].tolist(), truth.tolist(), strict=True))
    teams = {"ann": None, "bob": None, "cheat": known}
    return Handed(draw, {team: answered(draw, base, team, by_heart) for team, by_heart in teams.items()})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock before the window opens, which the ledger goes by too."""
    made = Clock("2030-12-31T00:00:00Z")
    monkeypatch.setattr("farshift.leaderboard.ledger.book.now", made.told)
    return made


@pytest.fixture
def board(coins: Path, clock: Clock, tmp_path: Path) -> Board:
    """A board with a window that opens in a day."""
    made = Board.init(tmp_path / "board", "A board of windows")
    sealed(made, clock)
    return made


@pytest.fixture
def opened(board: Board, clock: Clock) -> Board:
    """A board whose window is open."""
    clock.set(OPENS, seconds=60)
    return board
