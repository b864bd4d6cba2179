"""Does what one sees of a trained baseline without the shifted labels tell how it does under the shift?

Over the recorded results of a benchmark, Kendall's tau-b between a diagnostic and the OOD score, each the mean over
seeds of a baseline, with the interval over baselines of benchmarks/statistics/concurrence.py. Two diagnostics are in
the recorded answers: the ID score, and how often two seeds of a network disagree about a row (on the OOD rows, whose
labels it does not need, and on the ID rows). The others are kept of networks that were diagnosed (kept_diagnostics.py).

Over benchmarks, the mean tau with its 95 % t interval, in which the benchmarks of one source count as one: their rows
are alike. Beside it is the partial tau_b that is left where the ID score is held fixed,

    (t_do - t_di t_io) / sqrt((1 - t_di^2) (1 - t_io^2)),   d the diagnostic, i ID, o OOD

(Kendall, Biometrika 1942). Losses are turned round, so that a higher score is the better one everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.statistics.concurrence import MORE_THAN, tau_b
from ...benchmarks.statistics.concurrence import interval as tau_interval
from ...benchmarks.statistics.margin import LEVEL
from ...benchmarks.statistics.student_t import two_sided
from ..recipe import recipe
from .kept_diagnostics import kept_diagnostics
from .recorded_scores import RecordedScore, kept_scores
from .results import HOME, file_of, results

ID, ON_OOD, ON_ID = "ID score", "disagreement.ood", "disagreement.id"
CONSTANT = "most-frequent"
"""The baseline that answers alike whatever is asked: it is a floor and no model."""
LEAST_SOURCES = 3
"""Of fewer sources there is no interval."""


@dataclass(frozen=True)
class Correlation:
    """A diagnostic against the OOD score on one benchmark, over so many baselines and trained replicas of them, with
    its 95 % interval over baselines; `partial`: where the ID score is held fixed."""

    diagnostic: str
    benchmark: str
    baselines: int
    replicas: int
    tau: float
    low: float
    high: float
    partial: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals; None for what there is not."""
        numbers = {name: getattr(self, name) for name in ("tau", "low", "high", "partial")}
        return self.__dict__ | {name: round(x, 6) if isfinite(x) else None for name, x in numbers.items()}

    @property
    def source(self) -> str:
        """The data set that the benchmark's split is of."""
        return find_benchmark(self.benchmark).definition.split.partition("/")[0]


@dataclass(frozen=True)
class Pooled:
    """A diagnostic over all benchmarks that have it: the mean tau over their sources, its 95 % t interval, and the
    lowest and highest of a benchmark. NaN where there is none."""

    diagnostic: str
    baselines: int
    replicas: int
    benchmarks: int
    sources: int
    tau: tuple[float, float, float]
    partial: tuple[float, float, float]
    least: float
    most: float


def correlations(home: Path = HOME) -> list[Correlation]:
    """Every diagnostic against OOD on every benchmark on which more than six baselines have both; by diagnostic."""
    known = [one for benchmark in sorted({on for on, _ in results(home)}) for one in correlations_on(benchmark, home)]
    return sorted(known, key=lambda one: (one.diagnostic != ID, one.diagnostic, one.benchmark))


def correlations_on(benchmark: str, home: Path = HOME) -> list[Correlation]:
    """Every diagnostic against OOD on one benchmark, by those of its baselines that have both, if these are more than
    six."""
    scores = {name: one for name, one in kept_scores(benchmark, home).items() if name != CONSTANT}
    if not scores:
        return []
    ood = {name: _upwards(one, one.ood.per_seed) for name, one in scores.items()}
    inside = _by_seed(benchmark, scores, home)
    id_score = inside.pop(ID)
    found = [_correlation(ID, benchmark, id_score, ood, None)]
    found += [_correlation(name, benchmark, each, ood, id_score) for name, each in inside.items()]
    return [one for one in found if one is not None]


def pooled(found: Sequence[Correlation]) -> list[Pooled]:
    """Each diagnostic over its benchmarks, in the order in which they come."""
    by_name: dict[str, list[Correlation]] = defaultdict(list)
    for one in found:
        by_name[one.diagnostic].append(one)
    return [_pooled(name, some) for name, some in by_name.items()]


Values = Mapping[str, Mapping[int, float]]
"""By baseline, by seed."""


def _upwards(one: RecordedScore, per_seed: Sequence[float]) -> dict[int, float]:
    sign = 1 if one.better == "higher" else -1
    return {seed: sign * value for seed, value in zip(one.seeds, per_seed, strict=True)}


def _by_seed(benchmark: str, scores: Mapping[str, RecordedScore], home: Path) -> dict[str, Values]:
    """All diagnostics of a benchmark's baselines."""
    found: dict[str, dict[str, dict[int, float]]] = defaultdict(dict)
    kept = kept_diagnostics(benchmark, home)
    for name, one in scores.items():
        found[ID][name] = _upwards(one, one.id.per_seed)
        if recipe(name).estimator is None:
            for what, each in _disagreement(benchmark, name, home).items():
                found[what][name] = each
        for seed, told in kept.get(name, {}).items():
            for what, value in told.items():
                found[what].setdefault(name, {})[seed] = value
    return dict(found)


def _disagreement(benchmark: str, name: str, home: Path) -> dict[str, dict[int, float]]:
    """In how many rows of a view a seed's answer is another than that of the other seeds, on average, of a network;
    nothing where answers are numbers, or where there is one seed."""
    table = pq.read_table(file_of(home, benchmark, name), columns=["part", "seed", "prediction"])
    if pa.types.is_floating(table["prediction"].type) or pa.types.is_list(table["prediction"].type):
        return {}
    views = find_benchmark(benchmark).definition.views
    codes = pc.rank(table["prediction"].combine_chunks(), tiebreaker="dense").to_numpy()
    parts, seeds = table["part"].to_numpy(zero_copy_only=False), table["seed"].to_numpy()
    found = {}
    for what, view in ((ON_OOD, "ood"), (ON_ID, "id")):
        here = {int(seed): codes[(seeds == seed) & (parts == views[view].part)] for seed in np.unique(seeds)}
        if len(here) > 1 and all(len(one) for one in here.values()):
            found[what] = _from_others(here)
    return found


def _from_others(answers: Mapping[int, NDArray[Any]]) -> dict[int, float]:
    total = dict.fromkeys(answers, 0.0)
    for left, right in combinations(answers, 2):
        share = float(np.mean(answers[left] != answers[right]))
        total[left] += share
        total[right] += share
    return {seed: value / (len(answers) - 1) for seed, value in total.items()}


def _correlation(
    diagnostic: str, benchmark: str, inside: Values, ood: Values, id_score: Values | None
) -> Correlation | None:
    """None where too few baselines have the diagnostic, or all of them have it alike."""
    names = sorted(set(inside) & set(ood))
    both = {name: sorted(set(inside[name]) & set(ood[name])) for name in names}
    names = [name for name in names if both[name]]
    if len(names) <= MORE_THAN:
        return None

    def means(of: Values) -> NDArray[np.float64]:
        return np.array([np.mean([of[name][seed] for seed in both[name]]) for name in names])

    x, y = means(inside), means(ood)
    tau, low, high = tau_interval(x, y)
    if not isfinite(tau):
        return None
    partial = nan if id_score is None else _partial(tau, tau_b(x, z := means(id_score)), tau_b(z, y))
    replicas = sum(len(both[name]) for name in names)
    return Correlation(diagnostic, benchmark, len(names), replicas, tau, low, high, partial)


def _partial(direct: float, left: float, right: float) -> float:
    rest = (1 - left**2) * (1 - right**2)
    return (direct - left * right) / sqrt(rest) if rest > 0 else nan


def _pooled(name: str, found: Sequence[Correlation]) -> Pooled:
    by_source: dict[str, list[Correlation]] = defaultdict(list)
    for one in found:
        by_source[one.source].append(one)
    taus = [one.tau for one in found]
    return Pooled(
        diagnostic=name,
        baselines=sum(one.baselines for one in found),
        replicas=sum(one.replicas for one in found),
        benchmarks=len(found),
        sources=len(by_source),
        tau=_mean(by_source, lambda one: one.tau),
        partial=_mean(by_source, lambda one: one.partial),
        least=min(taus),
        most=max(taus),
    )


def _mean(
    by_source: Mapping[str, Sequence[Correlation]], value: Callable[[Correlation], float]
) -> tuple[float, float, float]:
    """The mean over sources and its 95 % t interval, within -1 and 1; NaN where there are too few."""
    known = {name: [value(one) for one in some if isfinite(value(one))] for name, some in by_source.items()}
    means = np.array([np.mean(some) for some in known.values() if some])
    if not len(means):
        return nan, nan, nan
    middle = float(means.mean())
    if len(means) < LEAST_SOURCES:
        return middle, nan, nan
    reach = two_sided(LEVEL, len(means) - 1) * float(means.std(ddof=1)) / sqrt(len(means))
    return middle, max(-1.0, middle - reach), min(1.0, middle + reach)
