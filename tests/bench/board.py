"""How long do the pages and the verification of a board take? Many submissions of one run each, on one benchmark.

make bench-board ARGS="--entries 200 --keep /tmp/board"

Measured in processes of their own, so that nothing is in memory: pages of a board whose rows nobody kept, pages again,
pages after one new entry; `verify` from nothing, again, and after one new entry. Goals: pages after one new entry in
5 s; a verification that was cut short goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import farshift as fs
from farshift.leaderboard.board import Board
from farshift.leaderboard.operations.submit import submit
from farshift.leaderboard.submission.pack import pack

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
        place = Path(folder)
        name = f"model {number:03}"
        fs.evaluate(lambda seed: Model(number, seed), on=ON, budget="quick", seeds=3, out=place / "run", name=name)
        submit(Board(board), pack([place / "run"], place / "s.zip", team=f"team {number % 50}"))


def timed(what: str, *command: str) -> None:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "farshift", "board", *command], capture_output=True, text=True)
    print(f"{what:45} {time.perf_counter() - began:8.1f} s   exit {done.returncode}", flush=True)
    if done.returncode:
        print(done.stdout[-1000:], done.stderr[-1000:])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=200)
    parser.add_argument("--keep", type=Path, help="Where the board is kept, and taken from when it is there.")
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder:
        board = chosen.keep or Path(folder) / "board"
        if not board.exists():
            Board.init(board, "A board to measure")
            with ProcessPoolExecutor(2) as pool:
                list(pool.map(enter, [(board, number) for number in range(chosen.entries)]))
        work = Path(folder) / "copy"
        shutil.copytree(board, work)
        shutil.rmtree(work / "derived", ignore_errors=True)
        shutil.rmtree(work / "site", ignore_errors=True)
        os.environ["FARSHIFT_HOME"] = str(Path(folder) / "home")
        timed("pages, no rows kept", "site", str(work))
        timed("pages again", "site", str(work))
        enter((work, chosen.entries))
        timed("pages after one new entry", "site", str(work))
        timed("verify", "verify", str(work))
        timed("verify again", "verify", str(work))
        enter((work, chosen.entries + 1))
        timed("verify after one new entry", "verify", str(work))


if __name__ == "__main__":
    main()
