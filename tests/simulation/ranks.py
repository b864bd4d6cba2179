"""Do rank sets hold all true ranks, and do paired tests reject as rarely as they say? By simulation.

Every trial draws entries whose true values are known. Rows differ in difficulty, which all entries share. A rank set is
right where it holds every rank that its entry shares with those it truly ties with; a trial counts where all are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from farshift.benchmarks.statistics.joint_covariance import estimate_joint_covariance
from farshift.benchmarks.statistics.paired_test import compare_rows
from farshift.benchmarks.statistics.ranks import compute_rank_sets
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.worst_group import estimate_worst_group

from .shares import shares

ENTRIES, ROWS = 15, 800


@dataclass(frozen=True)
class World:
    """Where entries are measured: on `ROWS` rows, with this many seeds, whose effect on a whole model has this standard
    deviation (times a lognormal factor of its own for each entry, where their training is `unlike`), and in this many
    clusters, whose effect on each entry has that one."""

    name: str
    seeds: int = 1
    seed_sd: float = 0.0
    clusters: int = 0
    cluster_sd: float = 0.0
    unlike: float = 0.0

    def scores(self, source: np.random.Generator, true: np.ndarray, rows: int = ROWS) -> list[RowScores]:
        """Binary scores of entries whose chance of being right lies `true` (M,) above that of all."""
        hard = source.uniform(0.3, 0.8, rows)
        codes = np.arange(rows) % self.clusters if self.clusters else None
        result = []
        for above in true:
            seed_sd = min(self.seed_sd * np.exp(self.unlike * source.standard_normal()), 0.08)
            chance = hard + above + seed_sd * source.standard_normal((self.seeds, 1))
            if codes is not None:
                chance = chance + (self.cluster_sd * source.standard_normal(self.clusters))[codes]
            right = source.uniform(size=(self.seeds, rows)) < chance
            result.append(RowScores(right.astype(np.float64), clusters=codes))
        return result


WORLDS = (
    World("1 seed"),
    World("5 seeds", seeds=5, seed_sd=0.02),
    World("5 seeds that hardly differ", seeds=5, seed_sd=0.002),
    World("3 seeds, training unlike", seeds=3, seed_sd=0.02, unlike=1.0),
    World("20 clusters", clusters=20, cluster_sd=0.05),
    World("20 clusters, 5 seeds", seeds=5, seed_sd=0.02, clusters=20, cluster_sd=0.05),
)
TIES = {
    "all tie": np.zeros(ENTRIES),
    "half tie": np.concatenate([np.zeros(8), np.linspace(-0.12, 0.12, 7)[np.arange(7) != 3], [0.06]]),
}


def true_ranks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest rank that each entry shares with those of equal value."""
    better, worse = values[None, :] > values[:, None], values[None, :] < values[:, None]
    return 1 + better.sum(axis=1), len(values) - worse.sum(axis=1)


def holds_all_ranks(world: World, true: np.ndarray, source: np.random.Generator) -> bool:
    result = compute_rank_sets(estimate_joint_covariance(world.scores(source, true)))
    low, high = true_ranks(true)
    return bool((result.low <= low).all() and (result.high >= high).all())


def rejections(world: World, rows: int, names: Iterable[str], source: np.random.Generator) -> list[bool]:
    """Whether each of these tests of two equal models rejects at the 5 % level."""
    result = compare_rows(*world.scores(source, np.zeros(2), rows))
    p = {result["test"].split(",")[0]: result["p"], "t": result["t"]["p"]}
    if "mid_p" in result:
        p["McNemar, mid-p"] = result["mid_p"]
    return [p[name] <= 0.05 for name in names]


GROUPS = 20
WORST = {
    "all groups tie": np.full(GROUPS, 0.6),
    "some are nearly as bad": np.linspace(0.55, 0.7, GROUPS),
    "one is clearly the worst": np.concatenate([[0.4], np.full(GROUPS - 1, 0.7)]),
}


def covers_worst(true: np.ndarray, seeds: int, source: np.random.Generator) -> bool:
    """Whether the interval of the worst group holds the lowest true mean."""
    groups = np.repeat(np.arange(GROUPS), 200)
    chance = true[groups] + 0.02 * (seeds > 1) * source.standard_normal((seeds, 1))
    scores = (source.uniform(size=(seeds, len(groups))) < chance).astype(np.float64)
    result = estimate_worst_group(RowScores(scores), groups, resamples=200)
    return bool(result.low <= true.min() <= result.high)


RANKS, SIZE, AT_MOST, WORST_GROUP = (0.94, 1.0), (0.04, 0.06), (0.0, 0.05), (0.94, 1.0)
PAIRED = (
    (World("500 rows, 1 seed"), 500, {"McNemar": AT_MOST, "McNemar, mid-p": SIZE, "t": SIZE}),
    (World("30 rows, 1 seed"), 30, {"McNemar": AT_MOST, "McNemar, mid-p": (0.0, 0.06), "t": (0.0, 0.06)}),
    (World("300 rows, 3 seeds that do not differ", seeds=3), 300, {"sign flips of row differences": SIZE}),
    (
        World("600 rows in 12 clusters, 1 seed", clusters=12, cluster_sd=0.1),
        600,
        {"sign flips of cluster sums": SIZE, "t": SIZE},
    ),
)


def trials_of() -> Iterator[tuple[Any, ...]]:
    """What is simulated, as `shares` takes it."""
    for world in WORLDS:
        for ties, true in TIES.items():
            setting = f"{ENTRIES} entries, {ROWS} rows, {world.name}, {ties}"
            yield "rank sets, all entries", setting, RANKS, holds_all_ranks, world, true
    for world, rows, goals in PAIRED:
        names = [f"size of the paired test: {name}" for name in goals]
        yield names, world.name, goals.values(), rejections, world, rows, goals
    for name, true in WORST.items():
        for seeds in (1, 5):
            setting = f"{GROUPS} groups of 200 rows, {seeds} seed{'s' * (seeds > 1)}, {name}"
            yield "worst group", setting, WORST_GROUP, covers_worst, true, seeds


def report(trials: int) -> list[dict[str, Any]]:
    """The shares of trials that held (`shares`)."""
    return shares(trials_of(), trials)
