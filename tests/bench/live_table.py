"""What does one new entry cost at a table of 1,000 entries x 10,000 rows with five seeds, worked out for a server?

make bench-live ARGS="--entries 1000 --rows 10000"

Made-up entries of right and wrong answers, given to the library as a board's rows are, without submissions: what is
measured is all between rows and a table's view. Beside it the limit: the product of one matrix of that size by NumPy,
from which every statement about pairs begins. Beside it, too, what it takes to keep such a table and to read it again,
as a server does that is started anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

# As in the processes of a server (leaderboard/server/serving.py); read when NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from farshift.benchmarks.statistics.interval import gap, mean
from farshift.benchmarks.statistics.joint_covariance import joint_covariance
from farshift.benchmarks.statistics.max_t import max_t
from farshift.benchmarks.statistics.normalised import summary
from farshift.benchmarks.statistics.remembered import Remembered
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.tally import tally
from farshift.leaderboard.entries import Standing
from farshift.leaderboard.tables.field import field_of
from farshift.leaderboard.tables.kept_tables import packed, unpacked
from farshift.leaderboard.tables.row_scores import EntryRows
from farshift.leaderboard.tables.standings import tables
from farshift.leaderboard.tables.suite_table import Summarised
from farshift.leaderboard.tables.table_view import TableView, table_view

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "benchmarks")]

BASELINE = "model 0000"


def made(number: int, rows: int, noise: tuple[float, float], hard: np.ndarray) -> tuple[Standing, EntryRows]:
    """An entry of one of 20 families of models; `noise`: how much its seeds differ altogether, and row by row."""
    from made_tables import entry

    source = np.random.default_rng([5, number])
    family = np.random.default_rng([7, number % 20]).normal(size=rows)
    own = hard + 0.7 * family + 0.7 * source.normal(size=rows) + 0.5 * source.normal() + 1
    across, within = noise
    right = own + across * source.normal(size=(5, 1)) + within * source.normal(size=(5, rows)) > 0
    sample = RowScores(right.astype(float))
    standing, _ = entry(f"model {number:04}", 0.7, team=f"team {number}", seeds=5)
    values = {"id": mean(sample), "ood": mean(sample)}
    score = replace(standing.score, **values, gap=gap(sample, sample), views=values, protocol_seeds=5)
    short = tally(sample)
    kept = EntryRows(short, short, floor=0.1, key=f"rows {number}")
    return replace(standing, score=score.rounded()), kept


def timed(what: str, call: Callable[[], Any]) -> Any:
    began, used = time.perf_counter(), time.process_time()
    found = call()
    print(
        f"{what:44} {time.perf_counter() - began:7.2f} s   processor {time.process_time() - used:6.2f} s   "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000)
    chosen = parser.parse_args()
    hard = np.random.default_rng(3).normal(size=chosen.rows)
    for noise, words in (((0.02, 0.6), "few seeds that differ"), ((0.0005, 0.05), "seeds that hardly differ")):
        print(f"{chosen.entries} entries x {chosen.rows} rows x 5 seeds, {words}")
        entries = [made(number, chosen.rows, noise, hard) for number in range(chosen.entries + 1)]
        rows = {one.entry: found for one, found in entries}
        samples = [rows[one.entry].ood for one, _ in entries]
        drawn = max_t(joint_covariance(samples)).stream is not None
        print(f"  critical values {'by draws' if drawn else 'as of independent pairs (Sidak)'}")
        known = Remembered()

        def view(count: int, entries=entries, rows=rows, known=known) -> TableView:
            (table,) = tables([one for one, _ in entries[:count]])
            arrived = {one.entry: place for place, (one, _) in enumerate(entries)}
            known.turn()
            return table_view(table, rows, {}, {}, BASELINE, field_of(table, rows, arrived), known)

        timed("  the table from its rows", lambda: view(chosen.entries))
        made_of_it = timed("  one new entry", lambda: view(chosen.entries + 1))
        summaries = {one.entry: Summarised(summary(rows[one.entry].ood)) for one, _ in entries}
        content = timed("  keeping the table", lambda of=made_of_it, also=summaries: packed(of, also))
        again = f"  reading it again ({len(content):,} bytes)"
        timed(again, lambda content=content, of=made_of_it: unpacked(content, of.table))
        means = np.stack([found.ood.means for found in rows.values()])
        timed("  the limit: one matrix times its transpose", lambda means=means: means @ means.T)


if __name__ == "__main__":
    main()
