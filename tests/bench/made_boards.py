"""Boards to measure: of submissions that were really handed in, one run each, made once and kept where that is asked."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import farshift as fs
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit_runs
from farshift.leaderboard.submission.pack import pack_runs

ON = "modadd97/xi35"


class Model:
    """Modular addition, wrong on a share of the rows that its number and its seed decide."""

    def __init__(self, number: int, seed: int) -> None:
        self.number, self.seed = number, seed

    def predict(self, batch):
        a, b = batch["a"], batch["b"]
        noise = (a * 31 + b * 17 + self.seed * 7 + self.number * 13) % 997 < 100 + 3 * self.number
        return (a + b + noise) % 97


def enter(job: tuple[Path, int]) -> None:
    """Run a model, and submit it to a board."""
    board, number = job
    with TemporaryDirectory() as folder:
        position = Path(folder)
        name = f"model {number:03}"
        fs.evaluate(lambda seed: Model(number, seed), on=ON, budget="quick", seeds=3, out=position / "run", name=name)
        submit_runs(Board(board), pack_runs([position / "run"], position / "s.zip", team=f"team {number % 50}"))


def asks_for_a_board(parser: argparse.ArgumentParser, entries: int) -> None:
    """The options of a program that measures such a board."""
    parser.add_argument("--entries", type=int, default=entries)
    parser.add_argument("--keep", type=Path, help="Where the board is kept, and taken from when it is there.")


@contextmanager
def board_of(chosen: argparse.Namespace) -> Iterator[tuple[Path, Path]]:
    """The board that these options ask for, and a folder for what goes afterwards."""
    with TemporaryDirectory() as folder:
        board = chosen.keep or Path(folder) / "board"
        if not board.exists():
            Board.init(board, "A board to measure")
            with ProcessPoolExecutor(2) as pool:
                list(pool.map(enter, [(board, number) for number in range(chosen.entries)]))
        yield board, Path(folder)
