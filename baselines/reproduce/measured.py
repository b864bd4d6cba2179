"""Measure the quantities of a claim: from runs, from recorded results, or from a split's rows.

Diagnostics of recorded baselines need no shifted labels. Two follow from the recorded predictions: the ID score, and
how often two seeds of a network disagree on a row, on the OOD rows or on the ID rows. The others are in
`baselines/results/BENCHMARK/diagnostics.json`: for each baseline the values of each seed's network, with the sha256 of
the recorded file that has its predictions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import isfinite, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.claims.claim import (
    BestScore,
    Claim,
    DiagnosticCorrelation,
    Difference,
    Fact,
    RankCorrelation,
    RecoveredShare,
    Score,
)
from ...benchmarks.claims.outcome import Measurement, make_exact
from ...benchmarks.comparison.compare import Side
from ...benchmarks.derived.recovered import compute_gap_recovered_on_rows
from ...benchmarks.runs.run import Run
from ...benchmarks.statistics.concurrence import MORE_THAN
from ...benchmarks.statistics.concurrence import compute_tau_interval as tau_interval
from ...benchmarks.statistics.interval import (
    Estimate,
    NotAvailable,
    estimate_gap,
    estimate_mean,
    estimate_paired_difference,
)
from ...benchmarks.statistics.sample import RowScores, Sample
from ...core.documents import read_json
from ...core.errors import BadDefinition, BadRun, UnknownName, get_first_line
from ..recipe import find_recipe
from ..running.recorded_scores import CONSTANT, RecordedScore, read_recorded_scores
from ..running.results import HOME, digest_result, get_recipe_name, get_result_path
from .facts import compute_fact

OVER = "95 % t interval over test rows and training seeds"
PAIRED = "95 % t interval over paired test rows and the training seeds of both"
CHOSEN = "95 % t interval over paired test rows and paired training seeds"
UNPAIRED = "95 % interval made of those of its scores, as independent (Zou and Donner 2008)"
FIELLER = "95 % Fieller interval over paired test rows and training seeds"
BY_ENTRIES = "95 % interval over baselines, as drawn from others like them"


def convert_estimate(estimate: Estimate, interval: str) -> Measurement:
    """Convert an estimate; if it has no value or no interval, give the reason."""
    if not isfinite(estimate.value):
        return Measurement(nan, why=f"not defined{f': {estimate.why}' if estimate.why else ''}")
    if not estimate.defined:
        return Measurement(nan, why=f"{estimate.value:g}, but no interval{f': {estimate.why}' if estimate.why else ''}")
    return Measurement(estimate.value, estimate.low, estimate.high, interval, estimate.per_seed)


def combine_values(parts: Sequence[Measurement], weights: Sequence[float]) -> Measurement:
    """A weighted sum of independent values, with the interval from theirs by the method of variance estimates recovery
    (Zou and Donner, Statistics in Medicine 2008)."""
    if why := next((part.why for part in parts if part.why), ""):
        return Measurement(nan, why=why)
    value = sum(weight * float(part.value) for weight, part in zip(weights, parts, strict=True))
    down = up = 0.0
    for weight, part in zip(weights, parts, strict=True):
        below, above = weight * (float(part.value) - part.low), weight * (part.high - float(part.value))
        down += (below if weight > 0 else above) ** 2
        up += (above if weight > 0 else below) ** 2
    return Measurement(value, value - sqrt(down), value + sqrt(up), UNPAIRED)


def _measure_tau(x: NDArray[np.float64], y: NDArray[np.float64], what: str, alike: str) -> Measurement:
    """Kendall's tau-b of two values of some baselines. what: which baselines these are; alike: why it has no value."""
    if len(x) <= MORE_THAN:
        return Measurement(nan, why=f"{len(x)} baselines {what}: more than {MORE_THAN} count")
    tau, low, high = tau_interval(x, y)
    return (
        Measurement(tau, low, high, f"{BY_ENTRIES} ({len(x)} of them)")
        if isfinite(tau)
        else Measurement(nan, why=alike)
    )


@dataclass(frozen=True)
class Evidence:
    """The runs of a claim, by name. `recorded_scores`: the recorded score of runs for which it is enough, so that no
    predictions are read."""

    claim: Claim
    runs: Mapping[str, Run]
    recorded_scores: Mapping[str, RecordedScore] = field(default_factory=dict)

    @cached_property
    def _sides(self) -> dict[str, Side]:
        return {name: Side(run) for name, run in self.runs.items()}

    def measure(self, name: str) -> Measurement:
        """The quantity called `name`. Each sort of the claim's schema has a method of its name."""
        quantity = self.claim.quantities[name]
        measured: Measurement = getattr(self, quantity.sort)(quantity)
        return measured

    def score(self, quantity: Score) -> Measurement:
        if quantity.run in self.recorded_scores:
            return convert_estimate(getattr(self.recorded_scores[quantity.run], quantity.view), OVER)
        if quantity.view == "gap":
            return convert_estimate(estimate_gap(self.sample(quantity, "id"), self.sample(quantity, "ood")), OVER)
        return convert_estimate(estimate_mean(self.sample(quantity)), OVER)

    def sample(self, quantity: Score, view: str = "") -> Sample:
        """The rows of a score with their answers, by its metric."""
        view = view or quantity.view
        side = self._sides[quantity.run]
        rows = side.rows(view, quantity.rule)
        if quantity.group:
            groups = side.benchmark.view(view)[0].row_metadata.get("group")
            known = [] if groups is None else sorted(set(map(str, groups.tolist())))
            if quantity.group not in known or groups is None:
                raise UnknownName(f"group of {side.benchmark.name}", quantity.group, known)
            rows = rows.select(np.flatnonzero(groups.astype(str) == quantity.group))
        return rows.by(self._metric(side, quantity.metric))

    @staticmethod
    def _metric(side: Side, name: str) -> Any:
        by_name = {metric.name: metric for metric in side.benchmark.metrics}
        if name and name not in by_name:
            raise UnknownName(f"metric of {side.benchmark.name}", name, by_name)
        return by_name[name] if name else side.metric

    def between(self, left: Score, right: Score) -> Measurement:
        """One score minus another: paired on the same rows; for different rows of one run, paired by its seeds."""
        if "gap" in (left.view, right.view) or {left.run, right.run} & set(self.recorded_scores):
            return combine_values([self.score(left), self.score(right)], [1.0, -1.0])
        x, y = self.sample(left), self.sample(right)
        if left.run == right.run and left.rule != right.rule and self._rows(left) == self._rows(right):
            return convert_estimate(estimate_mean(x.minus(y)), CHOSEN)
        apart = left.run == right.run and left.rule == right.rule and left.view != right.view
        if apart and not (left.group or right.group):
            return convert_estimate(estimate_gap(x, y), OVER)
        if left.run != right.run and self._rows(left) == self._rows(right):
            return convert_estimate(estimate_paired_difference(x, y), PAIRED)
        return combine_values([self.score(left), self.score(right)], [1.0, -1.0])

    def chosen(self, run: str) -> dict[str, dict[str, str]]:
        """For a run with several candidates, what each rule that a score names chose for each seed."""
        named = {
            quantity.rule
            for quantity in self.claim.quantities.values()
            if isinstance(quantity, Score) and quantity.run == run
        }
        side = self._sides[run]
        return {
            rule or side.run.selection: {str(seed): candidate for seed, candidate in side.chosen(rule).items()}
            for rule in sorted(named)
        }

    def _rows(self, quantity: Score) -> tuple[str, str, str, str]:
        """What two scores must share to have the same rows, labels and metric."""
        side = self._sides[quantity.run]
        views = side.benchmark.definition.views
        return side.benchmark.name, repr(views.get(quantity.view)), quantity.group, quantity.metric

    def difference(self, quantity: Difference) -> Measurement:
        left, right = (self.claim.quantities[name] for name in (quantity.left, quantity.right))
        if isinstance(left, Score) and isinstance(right, Score):
            return self.between(left, right)
        (x, rows), (y, others) = self._side(quantity.left), self._side(quantity.right)
        if rows != others:
            named = f"{quantity.left} and {quantity.right}"
            raise BadDefinition(f"claim {self.claim.name}: {named} have different rows")
        return convert_estimate(estimate_paired_difference(x, y), PAIRED)

    def _side(self, name: str) -> tuple[Sample, tuple[str, ...]]:
        """A score, or the best of several, and what identifies its rows."""
        quantity = self.claim.quantities[name]
        if isinstance(quantity, BestScore):
            return self._best(quantity), self._rows(self._score(quantity.scores[0]))
        score = self._score(name)
        return self.sample(score), self._rows(score)

    def best(self, quantity: BestScore) -> Measurement:
        """The mean over seeds of the best score of each."""
        return convert_estimate(estimate_mean(self._best(quantity)), OVER)

    def _best(self, quantity: BestScore) -> RowScores:
        """For each seed the rows of the run with the best score."""
        scores = [self._score(name) for name in quantity.scores]
        samples = [self.sample(item) for item in scores]
        of_rows = [item for item in samples if isinstance(item, RowScores)]
        alike = len({self._rows(item) for item in scores}) == len({item.scores.shape for item in of_rows}) == 1
        if len(of_rows) < len(samples) or not alike:
            raise BadDefinition(f"claim {self.claim.name}: best needs means over the same rows with equally many seeds")
        sign = 1 if self._metric(self._sides[scores[0].run], scores[0].metric).better == "higher" else -1
        which = np.argmax(sign * np.array([item.per_seed for item in of_rows]), axis=0)
        chosen = np.stack([of_rows[run].scores[seed] for seed, run in enumerate(which)])
        return replace(of_rows[0], scores=chosen)

    def recovered(self, quantity: RecoveredShare) -> Measurement:
        three = [self._score(name) for name in (quantity.score, quantity.floor, quantity.ceiling)]
        if {score.run for score in three} & set(self.recorded_scores):
            value, floor, ceiling = (float(self.score(score).value) for score in three)
            share = (value - floor) / (ceiling - floor) if ceiling != floor else nan
            return Measurement(share, share, share, "no interval: of kept scores")
        estimate = compute_gap_recovered_on_rows(*(self.sample(score) for score in three))
        if isinstance(estimate, NotAvailable):
            return Measurement(nan, why=estimate.reason)
        return Measurement(estimate.value, estimate.low, estimate.high, FIELLER)

    def rank_correlation(self, quantity: RankCorrelation) -> Measurement:
        left, right = (
            {
                name: getattr(score, side.view).value * (1 if score.better == "higher" else -1)
                for name, score in read_recorded_scores(side.on).items()
            }
            for side in (quantity.left, quantity.right)
        )
        common = sorted((set(left) & set(right)) - set(quantity.without))
        x, y = (np.array([side[name] for name in common]) for side in (left, right))
        return _measure_tau(x, y, "are in both", "all baselines score alike on one side")

    def diagnostic_correlation(self, quantity: DiagnosticCorrelation) -> Measurement:
        values, ood = pair_diagnostic_with_ood(quantity.diagnostic, quantity.on)
        return _measure_tau(values, ood, f"have {quantity.diagnostic}", "all baselines are alike on one side")

    def fact(self, quantity: Fact) -> Measurement:
        return make_exact(compute_fact(quantity.measure, quantity.split, quantity.arguments))

    def _score(self, name: str) -> Score:
        quantity = self.claim.quantities[name]
        if not isinstance(quantity, Score):
            raise BadDefinition(f"claim {self.claim.name}: {name} is not a score")
        return quantity


Values = Mapping[str, Mapping[int, float]]
"""By baseline, by seed."""

ID = "ID score"
DISAGREEMENT = {"disagreement.ood": "ood", "disagreement.id": "id"}
"""By diagnostic, the view whose rows are compared."""


def pair_diagnostic_with_ood(diagnostic: str, benchmark: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A diagnostic and the OOD score of the recorded baselines of a benchmark that have both, (baselines,) each: means
    over the seeds that have both. Losses are negated, so that a higher score is always better.

    Raises `UnknownName` for a diagnostic that no baseline has."""
    scores = {
        name: recorded_score for name, recorded_score in read_recorded_scores(benchmark).items() if name != CONSTANT
    }
    values = _read_values(diagnostic, benchmark, scores)
    pairs = []
    for name in sorted(set(values) & set(scores)):
        ood = _orient_seed_values(scores[name], scores[name].ood.per_seed)
        if seeds := sorted(set(values[name]) & set(ood)):
            pairs.append([np.mean([of[seed] for seed in seeds]) for of in (values[name], ood)])
    both = np.array(pairs, np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _read_values(diagnostic: str, benchmark: str, scores: Mapping[str, RecordedScore]) -> Values:
    if diagnostic == ID:
        return {
            name: _orient_seed_values(recorded_score, recorded_score.id.per_seed)
            for name, recorded_score in scores.items()
        }
    if diagnostic in DISAGREEMENT:
        networks = [name for name in scores if find_recipe(get_recipe_name(name)).estimator is None]
        return {name: _compute_disagreement(benchmark, name, DISAGREEMENT[diagnostic]) for name in networks}
    inside = read_diagnostics(benchmark)
    known = {what for seeds in inside.values() for values in seeds.values() for what in values}
    if diagnostic not in known:
        raise UnknownName(f"diagnostic of recorded baselines on {benchmark}", diagnostic, known | {ID, *DISAGREEMENT})
    return {
        name: {seed: values[diagnostic] for seed, values in seeds.items() if diagnostic in values}
        for name, seeds in inside.items()
    }


def _orient_seed_values(recorded_score: RecordedScore, values: Any) -> dict[int, float]:
    sign = 1 if recorded_score.better == "higher" else -1
    return {seed: sign * value for seed, value in zip(recorded_score.seeds, values, strict=True)}


def _compute_disagreement(benchmark: str, name: str, view: str) -> dict[int, float]:
    """The mean share of rows of a view on which a seed's answer differs from those of the other seeds; empty for
    numeric answers, or with one seed."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(get_result_path(HOME, benchmark, name), columns=["part", "seed", "prediction"])
    if pa.types.is_floating(table["prediction"].type) or pa.types.is_list(table["prediction"].type):
        return {}
    part = find_benchmark(benchmark).definition.views[view].part
    codes = pc.rank(table["prediction"].combine_chunks(), tiebreaker="dense").to_numpy()
    parts, seeds = table["part"].to_numpy(zero_copy_only=False), table["seed"].to_numpy()
    codes_by_seed = {int(seed): codes[(seeds == seed) & (parts == part)] for seed in np.unique(seeds)}
    if len(codes_by_seed) < 2 or not all(len(seed_codes) for seed_codes in codes_by_seed.values()):
        return {}
    return compute_mean_disagreement(codes_by_seed)


def compute_mean_disagreement(answers: Mapping[int, NDArray[Any]]) -> dict[int, float]:
    """By seed, the share of rows on which its answers (rows,) differ from those of another seed, on average."""
    total = dict.fromkeys(answers, 0.0)
    for left, right in combinations(answers, 2):
        share = float(np.mean(answers[left] != answers[right]))
        total[left] += share
        total[right] += share
    return {seed: value / (len(answers) - 1) for seed, value in total.items()}


def read_diagnostics(benchmark: str, home: Path = HOME) -> dict[str, dict[int, dict[str, float]]]:
    """The values of each baseline whose diagnostics belong to the current recorded file, by seed and
    `diagnostic.value`. `BadRun` if the file cannot be read."""
    file = home / benchmark.replace("/", "__") / "diagnostics.json"
    if not file.is_file():
        return {}
    try:
        return {
            name: {
                int(seed): {what: float(value) for what, value in values.items()}
                for seed, values in record["seeds"].items()
            }
            for name, record in sorted(read_json(file).items())
            if get_result_path(home, benchmark, name).is_file()
            and record["file"] == digest_result(benchmark, name, home)
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRun(f"{file} cannot be read as diagnostics of recorded results: {get_first_line(error)}") from error
