"""Do the numbers over many benchmarks cover the truth, and are detectable differences detected? By simulation.

A study has benchmarks of known difficulty, seeds that differ by a known amount, and binary rows. Each statistic's truth
is computed from the same world without noise of rows and with all the seeds there could be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from farshift.benchmarks.statistics.aggregate import Scale, aggregate, compute_iqm_weights
from farshift.benchmarks.statistics.concurrence import compute_tau_interval
from farshift.benchmarks.statistics.detectable import assume_detectable, measure_detectable
from farshift.benchmarks.statistics.interval import estimate_paired_difference, make_confidence_interval
from farshift.benchmarks.statistics.sample import RowScores

from .shares import shares

CHANCE = 0.1
DRAWS = 500
"""Resamples of a trial: fewer than a table takes, which makes an interval no narrower."""


@dataclass(frozen=True)
class World:
    """Benchmarks with these true normalised scores, on each of which this many seeds are trained, which differ with
    this standard deviation, and `rows` rows are answered."""

    levels: tuple[float, ...]
    seeds: int
    seed_sd: float
    rows: int = 400

    @property
    def names(self) -> list[str]:
        return [f"benchmark {number:02d}" for number in range(len(self.levels))]

    @property
    def scales(self) -> dict[str, Scale]:
        return dict.fromkeys(self.names, Scale(CHANCE, 1.0))

    def measured(self, source: np.random.Generator, above: float = 0.0) -> dict[str, RowScores]:
        """An entry's scores, whose true normalised scores lie `above` the levels."""
        result = {}
        for name, level in zip(self.names, self.levels, strict=True):
            right = CHANCE + (1 - CHANCE) * (level + above + self.seed_sd * source.standard_normal((self.seeds, 1)))
            hard = source.uniform(-0.1, 0.1, self.rows)
            answers = source.uniform(size=(self.seeds, self.rows)) < right + hard - hard.mean()
            result[name] = RowScores(answers.astype(np.float64))
        return result

    def quantiles(self) -> np.ndarray:
        """The true normalised scores of all the seeds that there could be, as their quantiles: (benchmarks, 200)."""
        normal = np.array([NormalDist().inv_cdf((step + 0.5) / 200) for step in range(200)])
        return np.array(self.levels)[:, None] + self.seed_sd * normal

    def iqm(self) -> float:
        values = self.quantiles().ravel()
        return float(compute_iqm_weights(values, np.full(len(values), 1 / len(values))) @ values)


def levels(count: int) -> tuple[float, ...]:
    return tuple(np.linspace(0.25, 0.75, count).tolist())


WORLDS = {
    f"{count} benchmarks, {seeds} seeds{'' if seed_sd > 0.01 else ' that hardly differ'}": World(
        levels(count), seeds, seed_sd
    )
    for count, seeds, seed_sd in ((5, 3, 0.03), (15, 3, 0.03), (15, 5, 0.03), (15, 5, 0.005), (15, 10, 0.06))
}


def covers_means(world: World, source: np.random.Generator) -> tuple[bool, bool]:
    """Whether the intervals of the mean and of the IQM hold the truth."""
    scores = {name: {"one": sample} for name, sample in world.measured(source).items()}
    (row,) = aggregate(scores, world.scales, draws=DRAWS).rows
    true = float(np.mean(world.levels))
    return row.mean.low <= true <= row.mean.high, row.iqm.low <= world.iqm() <= row.iqm.high


def covers_tau(entries: int, correlation: float, kind: str, source: np.random.Generator) -> bool:
    """Whether the interval of the concurrence of two benchmarks holds that of all entries there could be. Of normal
    scores tau is 2/pi arcsin(correlation), and of any that share a scale, such as a t distribution's, too."""
    both = source.standard_normal((2, entries))
    if kind == "heavy tails":
        both /= np.sqrt(source.chisquare(3, entries) / 3)
    x, y = both[0], correlation * both[0] + sqrt(1 - correlation**2) * both[1]
    _, low, high = compute_tau_interval(x, y, DRAWS)
    return low <= 2 / np.pi * np.arcsin(correlation) <= high


def finds_by_rows(rows: int, source: np.random.Generator) -> bool:
    """Whether a paired test of two entries that disagree on 10 % of the rows finds the detectable difference."""
    true = assume_detectable(rows).value
    share = np.array([(0.1 - true) / 2, 0.9, (0.1 + true) / 2])
    apart = source.choice([-1.0, 0.0, 1.0], size=(1, rows), p=share)
    return excludes_zero(RowScores(apart, (-1.0, 1.0)))


def finds_by_clusters(clusters: int, size: int, within: float, source: np.random.Generator) -> bool:
    """The same where disagreements correlate within clusters of rows."""
    rows, codes = clusters * size, np.repeat(np.arange(clusters), size)
    true = assume_detectable(rows, codes, within=within).value
    common = sqrt(0.1 * within) * source.standard_normal(clusters)[codes]
    apart = true + common + sqrt(0.1 * (1 - within)) * source.standard_normal(rows)
    return excludes_zero(RowScores(apart[None], (-np.inf, np.inf), codes))


def finds_by_seeds(seeds: int, source: np.random.Generator) -> bool:
    """Whether the difference that eight entries say is detectable, whose seeds vary as much as their rows make their
    means vary, is found between two others."""
    known = measure_detectable({f"entry {number}": trained(seeds, 0.0, source) for number in range(8)})
    left, right = trained(seeds, known.value, source), trained(seeds, 0.0, source)
    result = estimate_paired_difference(left, right)
    return not result.low <= 0 <= result.high


def trained(seeds: int, value: float, source: np.random.Generator) -> RowScores:
    """An entry on 300 rows, each of which it scores above or below its value with every seed alike."""
    by_rows = sqrt(0.05) * source.standard_normal(300)
    by_seeds = sqrt(0.1 / 300 * seeds) * source.standard_normal((seeds, 1))
    return RowScores(value + by_rows + by_seeds, (-np.inf, np.inf))


def excludes_zero(apart: RowScores) -> bool:
    result = make_confidence_interval(float(apart.scores.mean()), apart.spread())
    return not result.low <= 0 <= result.high


DETECTED = "power at the detectable difference"
COVERS, AT_LEAST, POWER = (0.93, 0.97), (0.93, 1.0), (0.77, 0.83)


def trials_of() -> Iterator[tuple[Any, ...]]:
    """What is simulated, as `shares` takes it."""
    for setting, world in WORLDS.items():
        yield ("mean", "IQM"), setting, (COVERS, COVERS), covers_means, world
    for entries in (7, 10, 20, 40):
        for correlation, kind in ((0.0, "normal"), (0.45, "normal"), (0.95, "normal"), (0.45, "heavy tails")):
            setting = f"{entries} entries, tau {2 / np.pi * np.arcsin(correlation):.1f}, {kind}"
            yield "concurrence", setting, AT_LEAST, covers_tau, entries, correlation, kind
    for rows in (200, 1000):
        yield DETECTED, f"{rows} rows", POWER, finds_by_rows, rows
    for clusters, within in ((8, 0.1), (25, 0.1), (25, 0.5)):
        setting = f"{clusters} clusters of 20 rows, correlation {within:g}"
        yield DETECTED, setting, POWER, finds_by_clusters, clusters, 20, within
    for seeds in (3, 5):
        yield DETECTED, f"{seeds} seeds each", POWER, finds_by_seeds, seeds


def report(trials: int) -> list[dict[str, Any]]:
    """The shares of trials that held (`shares`)."""
    return shares(trials_of(), trials)
