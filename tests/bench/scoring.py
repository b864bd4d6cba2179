"""How fast are the statistics of a board? Rank sets and worst groups, beside plain NumPy in one run.

make bench-scoring

Goals: rank sets of 100 entries x 10,000 rows in 1 s; the worst of 50 groups in 0.3 s at any number of rows. Medians of
interleaved rounds. What would take hours is measured on fewer resamples and extrapolated, which costs are linear in; the
table says on how many.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from farshift.benchmarks.statistics.joint_covariance import estimate_joint_covariance
from farshift.benchmarks.statistics.ranks import DRAWS, compute_rank_sets
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.worst_group import RESAMPLES as GROUP_RESAMPLES
from farshift.benchmarks.statistics.worst_group import estimate_worst_group

ROUNDS = 5
RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Way:
    """One way of doing a job: `run` does `resamples` of the `wanted` ones, in each of `rounds` rounds."""

    name: str
    run: Callable[[], object]
    resamples: int
    wanted: int
    rounds: int = ROUNDS
    goal: float | None = None


def worst(rows: int) -> dict[str, list[Way]]:
    groups = RNG.integers(0, 50, rows)
    scores = (RNG.uniform(size=rows) < RNG.uniform(0.6, 0.7, 50)[groups]).astype(float)
    sample = RowScores(scores[None])
    members = np.split(scores[np.argsort(groups, kind="stable")], np.cumsum(np.bincount(groups))[:-1])
    few = max(5, 1_000_000 // rows)
    return {
        f"the worst of 50 groups of {rows:,} rows, with its interval and {GROUP_RESAMPLES:,} resamples": [
            Way("ours", lambda: estimate_worst_group(sample, groups), GROUP_RESAMPLES, GROUP_RESAMPLES, goal=0.3),
            Way(
                "groups resampled row by row, NumPy",
                lambda: [
                    min(item[RNG.integers(0, len(item), len(item))].mean() for item in members) for _ in range(few)
                ],
                few,
                GROUP_RESAMPLES,
                2,
            ),
        ]
    }


def ranks(entries: int, rows: int) -> dict[str, list[Way]]:
    hard = RNG.uniform(0.2, 0.9, rows)
    samples = [
        RowScores((RNG.uniform(size=(1, rows)) < hard + 0.001 * number).astype(float)) for number in range(entries)
    ]
    scores = np.concatenate([sample.scores for sample in samples])
    pairs = np.triu_indices(entries, 1)
    return {
        f"rank sets of {entries} entries on {rows:,} rows, {DRAWS:,} draws": [
            Way("ours", lambda: compute_rank_sets(estimate_joint_covariance(samples)), DRAWS, DRAWS, goal=1.0),
            Way("rows resampled, all pairs, NumPy", lambda: [largest(scores, pairs) for _ in range(20)], 20, DRAWS, 2),
        ]
    }


def largest(scores: np.ndarray, pairs: tuple[np.ndarray, np.ndarray]) -> float:
    """The largest difference of a resample of the rows."""
    means = scores[:, RNG.integers(0, scores.shape[1], scores.shape[1])].mean(axis=1)
    return float(np.abs(means[pairs[0]] - means[pairs[1]]).max())


def measured(ways: list[Way]) -> list[dict[str, object]]:
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    busy: dict[str, list[float]] = {way.name: [] for way in ways}
    for way in ways:
        if way.resamples == way.wanted:
            way.run()  # warm
    for turn in range(ROUNDS):
        for way in ways:
            if turn < way.rounds:
                start, cpu = time.perf_counter(), time.process_time()
                way.run()
                times[way.name].append((time.perf_counter() - start) * way.wanted / way.resamples)
                busy[way.name].append((time.process_time() - cpu) * way.wanted / way.resamples)
    ours = statistics.median(busy[ways[0].name])
    return [
        {
            "way": way.name,
            "seconds": statistics.median(times[way.name]),
            "cpu_seconds": (cpu := statistics.median(busy[way.name])),
            "ratio": cpu / ours,
            "goal_seconds": way.goal,
            "extrapolated_from": None if way.resamples == way.wanted else way.resamples,
        }
        for way in ways
    ]


def main() -> None:
    requested = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    requested.add_argument("--rows", type=float, default=1e6, help="the most rows of the worst group (default: 1e6)")
    requested.add_argument("--json", action="store_true", help="the figures as JSON")
    options = requested.parse_args()
    rows = int(options.rows)
    jobs = ranks(100, 10_000)
    for size in sorted({10_000, 100_000, rows}):
        jobs |= worst(size)
    result = {job: measured(ways) for job, ways in jobs.items()}
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f"medians of {ROUNDS} interleaved rounds (2 of what is extrapolated): wall clock, and (CPU) which on a busy")
    print("machine says more; x: CPU against the first line")
    for job, lines in result.items():
        print(f"\n{job}")
        for line in lines:
            goal = "" if line["goal_seconds"] is None else f"  (goal: {line['goal_seconds']} s)"
            part = "" if line["extrapolated_from"] is None else f"  from {line['extrapolated_from']} resamples"
            print(
                f"{line['way']:>36}  {line['seconds']:12.4f} s ({line['cpu_seconds']:11.4f})  {line['ratio']:12,.0f} x{goal}{part}"
            )


if __name__ == "__main__":
    main()
