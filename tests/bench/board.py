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

from made_boards import asks_for_a_board, board_of, enter


def timed(what: str, *command: str) -> None:
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "farshift", "board", *command], capture_output=True, text=True)
    print(f"{what:45} {time.perf_counter() - began:8.1f} s   exit {done.returncode}", flush=True)
    if done.returncode:
        print(done.stdout[-1000:], done.stderr[-1000:])


def main() -> None:
    parser = argparse.ArgumentParser()
    asks_for_a_board(parser, 200)
    chosen = parser.parse_args()
    with board_of(chosen) as (board, folder):
        work = folder / "copy"
        shutil.copytree(board, work)
        shutil.rmtree(work / "derived", ignore_errors=True)
        shutil.rmtree(work / "site", ignore_errors=True)
        os.environ["FARSHIFT_HOME"] = str(folder / "home")
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
