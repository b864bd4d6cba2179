"""Scoring: one pure function from a run's predictions to its scores. No torch, no network, no clock.

The same predictions give the same bytes (`Score.json()`) everywhere: offline, on a board, on another platform.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..loaders.part import Part
from ..splits.canonical import canonical_json
from ..splits.errors import BadRun, FarshiftError
from ..splits.plugins import module
from .benchmark import SCORER, Benchmark, find_benchmark
from .run import Carded, Run, read_run
from .statistics.interval import (
    LEVEL,
    Estimate,
    Scores,
    difference_of_gaps,
    gap,
    mean,
    paired_difference,
)

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BUCKETS = 12


@dataclass(frozen=True)
class Score:
    """What a run is worth: plain JSON in `record`."""

    record: dict[str, Any]

    def json(self) -> bytes:
        """Canonical JSON: the bytes that a board stores and anybody can compute again."""
        return canonical_json(self.record)

    def __getitem__(self, key: str) -> Any:
        return self.record[key]

    def __str__(self) -> str:
        head = f"{self.record['model']} on {self.record['benchmark']} ({self.record['metric']}, {self.record['kind']})"
        lines = [f"{name:>10}  {in_words(self.record[name])}" for name in ("id", "ood", "gap")]
        lines += [
            f"{name:>10}  {in_words(view)}" for name, view in self.record["views"].items() if name not in ("id", "ood")
        ]
        if worst := self.record["worst_group"]:
            lines.append(f"{'worst':>10}  {in_words(worst)}  group {worst['group']} of {len(worst['groups'])}")
        return "\n".join([head, *lines, f"{'':>10}  {self.record['interval']}"])


def in_words(estimate: dict[str, Any]) -> str:
    """A value and its interval, such as `0.953 [0.941, 0.965]`."""
    return f"{estimate['value']:.3f} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def score(run: Run | Path | str) -> Score:
    """The scores of a run: ID, OOD, gap, every view, worst group and severity curve, each with its 95 % interval.

    Raises `BadRun` where the run was made for another version of the benchmark, or does not hold exactly one
    prediction per row and seed.
    """
    if not isinstance(run, Run):
        run = read_run(run)
    benchmark = current(run)
    return score_predictions(benchmark, run.predictions(), run)


def current(run: Run) -> Benchmark:
    """The benchmark of a run; `BadRun` where the run was made for another version of it."""
    benchmark = find_benchmark(run.benchmark)
    here = benchmark.identity(run.budget, run.steps)
    if run.entry_identity != here:
        raise BadRun(
            f"{run.path} was made for another version of {run.benchmark} "
            f"(identity {run.entry_identity[:12]}.., here {here[:12]}..): run it again"
        )
    return benchmark


def score_predictions(benchmark: Benchmark, predictions: pa.Table, card: Carded) -> Score:
    """The scores of a table of predictions (part, row_id, seed, candidate, prediction) of the run that `card` is of."""
    benchmark.check()
    seeds = card.seeds
    scored = Scored(benchmark, predictions, seeds)
    views = {name: scored.view(name) for name in benchmark.definition.views}
    ood_part, ood = scored.rows("ood")
    record: dict[str, Any] = {
        "scorer": SCORER,
        "benchmark": benchmark.name,
        "kind": benchmark.kind,
        "entry_identity": benchmark.identity(card.budget, card.steps),
        "model": card.model,
        "budget": card.budget,
        "steps": card.steps,
        "seeds": list(seeds),
        "protocol_seeds": benchmark.seeds(card.budget),
        "metric": f"{benchmark.definition.metrics[0].name}@{benchmark.definition.metrics[0].version}",
        "id": views["id"].record(),
        "ood": views["ood"].record(),
        "gap": gap(scored.rows("id")[1], ood).record(),
        "views": {name: estimate.record() for name, estimate in views.items()},
        "worst_group": _worst_group(ood_part, ood),
        "severity": _severity_curve(scored),
        "interval": _meaning(len(seeds)),
    }
    return Score(record)


def _meaning(seeds: int) -> str:
    over = f"rows and {seeds} training seeds" if seeds > 1 else "rows only (one seed: training noise is not in it)"
    return f"[low, high]: {LEVEL:.0%} t interval over {over}"


class Scored:
    """A run's predictions, turned into per-row scores, shape (seeds, rows), view by view."""

    def __init__(self, benchmark: Benchmark, predictions: pa.Table, seeds: tuple[int, ...]) -> None:
        self.benchmark, self.seeds = benchmark, seeds
        pin = benchmark.definition.metrics[0]
        self._metric = module("benchmarks/metrics", pin.name, "metric")
        if pin.version != self._metric.VERSION:
            raise FarshiftError(
                f"{benchmark.name} is scored by {pin.name}@{pin.version}; here it is version {self._metric.VERSION}"
            )
        self._answers = {part: self._by_seed(predictions, part) for part in benchmark.predicted_parts}

    def _by_seed(self, predictions: pa.Table, part: str) -> dict[int, tuple[NDArray[Any], NDArray[Any]]]:
        """For each seed the row ids, ascending, and the predictions, held to be exactly the part's rows."""
        import pyarrow.compute as pc

        expected = self.benchmark.part(part).row_ids
        found = {}
        mine = predictions.filter(pc.equal(predictions["part"], part))
        for seed in self.seeds:
            rows = mine.filter(pc.equal(mine["seed"], seed))
            ids = rows["row_id"].to_numpy()
            order = np.argsort(ids, kind="stable")
            if not np.array_equal(ids[order], expected):
                raise BadRun(f"seed {seed}, {part}: {row_id_problem(ids, expected)}")
            found[seed] = (expected, rows["prediction"].to_numpy()[order])
        return found

    def rows(self, view: str) -> tuple[Part, Scores]:
        """The view's rows and their scores, shape (seeds, rows)."""
        part, truth = self.benchmark.view(view)
        answers = self._answers[self.benchmark.definition.views[view].part]
        scores = []
        for seed in self.seeds:
            ids, prediction = answers[seed]
            here = prediction[np.searchsorted(ids, part.row_ids)]
            scores.append(self._metric.per_row(here, truth, self.benchmark.task))
        return part, np.stack(scores)

    def view(self, name: str) -> Estimate:
        return mean(self.rows(name)[1])


def row_id_problem(got: NDArray[np.uint64], expected: NDArray[np.uint64]) -> str:
    """What is wrong with a set of row ids: missing, unknown or repeated ones, each counted and one named."""
    problems = []
    missing, unknown = np.setdiff1d(expected, got), np.setdiff1d(got, expected)
    values, counts = np.unique(got, return_counts=True)
    repeated = values[counts > 1]
    for what, ids in (("missing", missing), ("unknown", unknown), ("repeated", repeated)):
        if len(ids):
            problems.append(f"{len(ids)} {what} row ids (first {ids[0]:016x})")
    return ", ".join(problems) or "the row ids are as expected"


def _worst_group(part: Part, scores: Scores) -> dict[str, Any] | None:
    """The group of the OOD view with the lowest score, and all groups. None where there are fewer than two.

    The lowest of several noisy means is biased downwards; every group is given, so that it can be judged."""
    groups = part.carried.get("group")
    names = sorted(set(groups.tolist())) if groups is not None else []
    if groups is None or not 2 <= len(names) <= 1000:
        return None
    found = {str(name): mean(scores[:, groups == name]).record() for name in names}
    worst = min(found, key=lambda name: (found[name]["value"], name))
    return {"group": worst, **found[worst], "groups": found}


def _severity_curve(scored: Scored) -> list[dict[str, Any]]:
    """The score along severity: points of the ID view, then of the OOD view, each in buckets of similar size."""
    curve = []
    for view, most in (("id", MAX_BUCKETS // 3), ("ood", MAX_BUCKETS - MAX_BUCKETS // 3)):
        part, scores = scored.rows(view)
        if "severity" not in part.carried:
            return []
        severity = part.carried["severity"]
        for low, high in _buckets(severity, most):
            inside = (severity >= low) & (severity <= high)
            curve.append({"view": view, "from": low, "to": high, **mean(scores[:, inside]).record()})
    return curve


def _buckets(severity: NDArray[Any], most: int) -> list[tuple[Any, Any]]:
    """At most `most` ranges of severity that hold similar numbers of rows; single values where they are few."""
    values, counts = np.unique(severity, return_counts=True)
    if len(values) <= most:
        return [(value, value) for value in values.tolist()]
    share = np.minimum((np.cumsum(counts) - counts) * most // counts.sum(), most - 1)
    return [(values[share == k].min().item(), values[share == k].max().item()) for k in np.unique(share)]


def compare(left: Run | Path | str, right: Run | Path | str) -> dict[str, Any]:
    """Left minus right on the same rows: differences in ID, OOD and gap, each with its paired 95 % interval.

    `distinguishable` says whether the interval excludes zero; it is None where a run has a single seed, since the
    interval then lacks the noise of training. Refuses runs of different entry identity."""
    runs = [run if isinstance(run, Run) else read_run(run) for run in (left, right)]
    a, b = runs
    if a.entry_identity != b.entry_identity:
        raise FarshiftError(
            f"these runs cannot be compared: {a.model} is on {a.benchmark} (budget {a.budget}, identity "
            f"{a.entry_identity[:12]}..), {b.model} on {b.benchmark} (budget {b.budget}, {b.entry_identity[:12]}..)"
        )
    benchmark = current(a)
    x, y = (Scored(benchmark, run.predictions(), run.seeds) for run in runs)
    views = [(x.rows(view)[1], y.rows(view)[1]) for view in ("id", "ood")]
    found = {name: paired_difference(*pair).record() for name, pair in zip(("id", "ood"), views, strict=True)}
    found["gap"] = difference_of_gaps((views[0][0], views[1][0]), (views[0][1], views[1][1])).record()
    single = min(len(a.seeds), len(b.seeds)) == 1
    over = (
        "rows only: a single seed tells nothing of training noise" if single else "rows and the training seeds of both"
    )
    for item in found.values():
        item["distinguishable"] = None if single else not item["low"] <= 0 <= item["high"]
        del item["per_seed"], item["seeds"]
    return {
        "benchmark": a.benchmark,
        "left": a.model,
        "right": b.model,
        "seeds": {"left": len(a.seeds), "right": len(b.seeds)},
        "difference": found,
        "interval": f"left minus right; {LEVEL:.0%} t interval over paired {over}",
    }
