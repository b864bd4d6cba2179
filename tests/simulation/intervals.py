"""Do 95 % intervals hold the truth 95 times in a hundred? By simulation, with every source of noise known.

The score of a row is drawn from effects of its cluster, the row itself, the training seed, and chance. The truth is the
mean over all rows, clusters and seeds that there could be (over the same clusters, where these are fixed). A trial
counts where the interval holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from farshift import Answers
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from farshift.benchmarks.scoring.answered_rows import AnsweredRows
from farshift.benchmarks.statistics.clusters import FEW
from farshift.benchmarks.statistics.interval import (
    Estimate,
    estimate_gap,
    estimate_gap_difference,
    estimate_mean,
    estimate_paired_difference,
)
from farshift.benchmarks.statistics.sample import RowScores, Sample, count_jackknife_groups, deal_rows, make_replicates
from farshift.benchmarks.statistics.variance_estimate import make_generator

Source = np.random.Generator
SIZE = 20
"""Rows in a cluster, on the average."""


@dataclass(frozen=True)
class World:
    """Where a model is measured.

    clusters: how many (0: `rows` independent rows); unequal: of 4 to 36 rows, else of 20 each. likeness: the correlation
    of two rows of a cluster. binary: right or wrong, around `level`; else normal with variance 1 around 0. seed_sd:
    what training seeds make of a whole model; chance: of a normal score, the variance that a single prediction has of
    its own."""

    clusters: int = 0
    unequal: bool = False
    likeness: float = 0.0
    binary: bool = False
    level: float = 0.6
    seeds: int = 1
    seed_sd: float = 0.0
    chance: float = 0.0
    rows: int = 300

    def sizes(self) -> np.ndarray:
        if not self.clusters:
            return np.ones(self.rows, int)
        return (
            np.linspace(4, 2 * SIZE - 4, self.clusters).round().astype(int)
            if self.unequal
            else (np.full(self.clusters, SIZE))
        )

    def codes(self) -> np.ndarray | None:
        return np.repeat(np.arange(self.clusters), self.sizes()) if self.clusters else None

    @property
    def truth(self) -> float:
        return self.level if self.binary else 0.0

    def rows_of(self, source: Source) -> np.ndarray:
        """What is expected of each row, (n,): its cluster's effect and its own."""
        sizes, rest = self.sizes(), 1 - self.likeness
        if self.binary:
            if not self.likeness:
                return np.clip(self.level + 0.2 * source.choice([-1.0, 1.0], sizes.sum()), 0, 1)
            odds = rest / self.likeness  # a beta distribution of clusters' levels has this correlation within them
            return np.repeat(source.beta(self.level * odds, (1 - self.level) * odds, len(sizes)), sizes)
        return np.repeat(sqrt(self.likeness) * source.standard_normal(len(sizes)), sizes) + sqrt(
            rest - self.chance
        ) * source.standard_normal(sizes.sum())

    def scores(self, source: Source, expected: np.ndarray, better: np.ndarray | float = 0.0) -> RowScores:
        """Scores on rows of which this is expected, by models that are `better` by so much, (seeds, 1)."""
        shape = (self.seeds, len(expected))
        level = expected + better + self.seed_sd * source.standard_normal((self.seeds, 1))
        if self.binary:
            return RowScores((source.uniform(size=shape) < level).astype(float), (0.0, 1.0), self.codes())
        return RowScores(level + sqrt(self.chance) * source.standard_normal(shape), (-inf, inf), self.codes())

    def __str__(self) -> str:
        where = f"{self.rows} rows" if not self.clusters else f"{self.clusters} clusters"
        output = [where + (", 4 to 36 rows each" if self.unequal else "")]
        output += [f"correlation {self.likeness:g}"] * bool(self.clusters) + ["binary" if self.binary else "normal"]
        output += [f"true value {self.level:g}"] * (self.level != 0.6 or self.rows != 300)
        output += [f"{self.seeds} seeds, sd {self.seed_sd:g}"] * (self.seeds > 1)
        return ", ".join(output)


def of_a_mean(world: World, source: Source) -> bool:
    return _holds(estimate_mean(world.scores(source, world.rows_of(source))), world.truth)


def of_fixed_clusters(world: World, source: Source) -> bool:
    """The clusters' levels are the same in every trial, and known; rows are drawn anew within them."""
    levels = np.linspace(world.level - 0.3, world.level + 0.3, world.clusters)
    expected = np.repeat(levels, world.sizes())
    return _holds(estimate_mean(world.scores(source, expected)), float(expected.mean()))


def of_right_or_wrong(world: World, source: Source) -> bool:
    """Rows that are equally hard, near the end of the scale or few."""
    scores = (source.uniform(size=(1, world.rows)) < world.level).astype(float)
    return _holds(estimate_mean(RowScores(scores)), world.level)


def of_seeds_that_fail(world: World, source: Source) -> bool:
    """A fifth of all trainings fails, and scores .3; some of these seeds do, and some do not."""
    learnt = source.uniform(size=world.seeds) < 0.8
    while learnt.all() or not learnt.any():
        learnt = source.uniform(size=world.seeds) < 0.8
    level = np.where(learnt, world.level, 0.3)[:, None]
    scores = (source.uniform(size=(world.seeds, world.rows)) < level).astype(float)
    return _holds(estimate_mean(RowScores(scores)), 0.8 * world.level + 0.2 * 0.3)


def of_a_gap(world: World, source: Source) -> bool:
    """ID minus OOD, each on clusters of its own; a good seed is good on both."""
    seeds = world.seed_sd * source.standard_normal((world.seeds, 1))
    alone = replace(world, seed_sd=0.0)
    left, right = (alone.scores(source, alone.rows_of(source), seeds) for _ in range(2))
    return _holds(estimate_gap(left, right), 0.0)


def of_a_difference(world: World, source: Source) -> bool:
    """Two models on the same rows: the clusters' effect on both is the same by half."""
    return _holds(estimate_paired_difference(*_two_models(world, source)), 0.0)


def of_a_difference_of_gaps(world: World, source: Source) -> bool:
    inside, outside = _two_models(world, source), _two_models(world, source)
    return _holds(estimate_gap_difference((inside[0], outside[0]), (inside[1], outside[1])), 0.0)


def of_a_square(world: World, source: Source) -> bool:
    """The square of a mean, a number that is not a mean of rows: by leaving out groups of rows, or whole clusters."""
    scores, codes = world.scores(source, world.rows_of(source)), world.codes()
    ids = np.arange(scores.rows, dtype=np.uint64)
    groups = deal_rows(ids, codes, count_jackknife_groups(ids, codes))
    sizes = np.bincount(groups)
    sums = [np.bincount(groups, row) for row in scores.scores]
    states = [[np.array(pair) for pair in zip(row, sizes, strict=True)] for row in sums]
    result = make_replicates(states, np.add, lambda state: float((state[0] / state[1]) ** 2), sizes, (0.0, 1.0))
    return _holds(estimate_mean(result), world.truth**2)


def of_balanced_accuracy(world: World, source: Source) -> bool:
    return _holds(estimate_mean(_of_classes("balanced_accuracy", world, source)), world.level)


def of_macro_f1(world: World, source: Source) -> bool:
    """Of two classes that are equally frequent, and equally hard: what is true of a model that is right so often."""
    return _holds(estimate_mean(_of_classes("macro_f1", world, source)), world.level)


def of_auroc(world: World, source: Source) -> bool:
    return _holds(estimate_mean(_of_classes("auroc", world, source)), world.level)


def of_a_difference_of_auroc(world: World, source: Source) -> bool:
    """Two equal models on the same rows, which see half of the same."""
    truth = source.integers(0, 2, world.rows)
    shared = source.standard_normal(world.rows)
    left, right = (_ranked(world, source, truth, shared) for _ in range(2))
    return _holds(estimate_paired_difference(left, right), 0.0)


def _of_classes(name: str, world: World, source: Source) -> Sample:
    """Two classes, each row of either alike; a model that is right (of AUROC: ranks a pair right) `level` of the time.
    Both classes have a row: an experiment without is none."""
    truth = source.integers(0, 2, world.rows)
    truth[:4] = [0, 1, 0, 1]
    if name == "auroc":
        return _ranked(world, source, truth, source.standard_normal(world.rows))
    right = source.uniform(size=world.rows) < world.level
    return _rows_of(truth, Answers.all_given(np.where(right, truth, 1 - truth))).by(find_metric(name))


def _ranked(world: World, source: Source, truth: np.ndarray, shared: np.ndarray) -> Sample:
    noise = (shared + source.standard_normal(world.rows)) / sqrt(2)
    result = 1 / (1 + np.exp(-noise - truth * sqrt(2) * NormalDist().inv_cdf(world.level)))
    scores = np.stack([1 - result, result], axis=1).astype(np.float32)
    return _rows_of(truth, Answers.all_given(scores.argmax(axis=1), scores)).by(find_metric("auroc"))


def _rows_of(truth: np.ndarray, answers: Answers) -> AnsweredRows:
    task = Task("classification", ("a",), "label", classes=2)
    return AnsweredRows(task, np.arange(len(truth), dtype=np.uint64), truth, [answers])


def _two_models(world: World, source: Source) -> tuple[RowScores, RowScores]:
    shared, *own = (world.rows_of(source) for _ in range(3))
    if world.binary:
        return tuple(world.scores(source, (shared + item) / 2) for item in own)  # type: ignore[return-value]
    return tuple(world.scores(source, (shared + item) / sqrt(2)) for item in own)  # type: ignore[return-value]


def _holds(found: Estimate, truth: float) -> bool:
    return found.low <= truth <= found.high


Trial = Callable[[World, Source], bool]

CLUSTERED = [
    (of_a_mean, World(clusters, unequal, likeness, binary))
    for clusters in (FEW, 20, 200)
    for unequal in (False, True)
    for likeness in (0.1, 0.5)
    for binary in (False, True)
]
SEEDED = [
    (trial, World(binary=True, seeds=seeds, seed_sd=seed_sd))
    for trial, seed_sd in ((of_a_mean, 0.03), (of_a_mean, 0.1), (of_a_gap, 0.03), (of_a_difference, 0.03))
    for seeds in (2, 3, 5, 10)
]
BOTH = [
    (trial, World(20, True, 0.1, seeds=seeds, seed_sd=0.1, chance=0.3))
    for trial in (of_a_mean, of_a_gap, of_a_difference, of_a_difference_of_gaps)
    for seeds in (2, 3, 5, 10)
]
FEW_ROWS = [
    (trial, World(binary=True, level=level, rows=rows))
    for trial in (of_right_or_wrong, of_balanced_accuracy, of_macro_f1, of_auroc)
    for rows in (10, 30, 300)
    for level in (0.6, 0.9, 0.99)
]
CAREFUL = (0.93, 1.0)
"""The goal where the least rows or seeds, or a value at the end of its scale, are to be held: no narrower than said."""

SETTINGS: dict[str, list[tuple[Trial, World]]] = {
    "independent rows": [(of_a_mean, World()), (of_a_mean, World(binary=True))],
    "clusters": CLUSTERED,
    "fixed clusters": [(of_fixed_clusters, World(5, unequal, binary=True)) for unequal in (False, True)],
    "seeds": SEEDED,
    "clusters and seeds": BOTH,
    "seeds that fail": [(of_seeds_that_fail, World(binary=True, level=0.9, seeds=seeds)) for seeds in (3, 5)],
    "few rows": [
        *FEW_ROWS,
        *((of_a_difference_of_auroc, World(binary=True, level=0.8, rows=rows)) for rows in (30, 300)),
    ],
    "no mean of rows": [(of_a_square, World(clusters, True, 0.1, binary=True)) for clusters in (20, 200)],
}


def report(trials: int) -> list[dict[str, Any]]:
    """Coverage of the 95 % intervals in every setting: `what` the interval is of, `setting`, `coverage`, and `mc_se`,
    the standard error of that by the number of trials."""
    return [row for name in SETTINGS for row in coverage(name, trials)]


def coverage(name: str, trials: int) -> Iterator[dict[str, Any]]:
    """The rows of the report under one name of SETTINGS."""
    for trial, world in SETTINGS[name]:
        what = trial.__name__.removeprefix("of_").replace("_", " ")
        source = make_generator(f"simulation/intervals/{what}/{world}")
        locked = sum(trial(world, source) for _ in range(trials)) / trials
        yield {
            "what": what,
            "setting": str(world),
            "coverage": round(locked, 4),
            "mc_se": round(sqrt(locked * (1 - locked) / trials), 4),
        } | ({"goal": CAREFUL} if "seeds" in name or name == "few rows" else {})
