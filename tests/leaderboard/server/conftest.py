"""A board with a few entries behind a real server on loopback."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs, withdraw_entry
from farshift.leaderboard.submission.pack import pack_runs
from fuzz.kept import reading_with
from running import Running, running


@pytest.fixture(scope="session")
def packed(runs, reader, tmp_path_factory) -> list[Path]:
    """A submission of each run."""
    position = tmp_path_factory.mktemp("packed")
    with reading_with(reader):
        return [pack_runs([run], position / f"{run.name}.zip", team=f"team {run.name}") for run in runs]


@pytest.fixture(scope="session")
def filled(packed, reader, tmp_path_factory) -> Path:
    """A board with three entries, one of them withdrawn. Tests that change it copy it."""
    board = Board.init(tmp_path_factory.mktemp("filled") / "board", "A <b>test</b> board")
    with reading_with(reader):
        names = [submit_runs(board, file)[0][0] for file in packed]
    withdraw_entry(board, names[1], "a bug in our loader")
    return board.path


@pytest.fixture
def own(filled, tmp_path) -> Board:
    """A copy of that board for one test alone."""
    return Board(shutil.copytree(filled, tmp_path / "served"))


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    """Start servers that end with the test."""
    started: list[Running] = []

    def start(place: object, **options: object) -> Running:
        started.append(running(place, **options))
        return started[-1]

    yield start
    for item in started:
        item.stop()


@pytest.fixture(scope="session")
def site(filled) -> Iterator[Running]:
    """A server of the board that no test changes."""
    result = running(filled)
    yield result
    result.stop()
