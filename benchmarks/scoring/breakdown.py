"""Breakdowns of a score: groups, severities, calibration, lost predictions, label errors, compositionality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition
from ..answers import ABSTAINED, ANSWERED, FAILED
from ..derived.compositional import Compositionality, estimate_compositionality_gap
from ..derived.extrapolation import Extrapolation, Valley, estimate_extrapolation, find_valley
from ..derived.label_errors import LabelErrors, estimate_label_error_detection
from ..metrics import Metric, State, find_metric
from ..statistics.clusters import make_clustering
from ..statistics.interval import NotAvailable, estimate_mean
from ..statistics.ranks import Better
from ..statistics.sample import RowScores, assign_row_groups, count_jackknife_groups, deal_rows
from .answered_rows import AnsweredRows, Chosen, RunPredictions
from .record import AnswerCounts, Calibration, CalibrationBin, SeverityPoint, WorstGroup

MAX_BUCKETS = 12
MAX_GROUPS = 1000
QUANTILES = (0.1, 0.5)
Views = Mapping[str, AnsweredRows]


def count_answers(rows: AnsweredRows) -> AnswerCounts:
    """Count the rows answered, abstained from and failed, over all seeds."""
    status = np.concatenate([answers.status for answers in rows.answers])
    return AnswerCounts(len(status), *(int((status == answers).sum()) for answers in (ANSWERED, ABSTAINED, FAILED)))


def score_groups(
    scored: RunPredictions, rows: AnsweredRows, by: Metric
) -> tuple[WorstGroup | None, dict[str, float] | None]:
    """Score the groups of the OOD view: the worst one with all of them, and quantiles over groups; None if there are
    fewer than two. Groups without a defined metric or interval are left out.

    Every group counts once, regardless of its size. The lowest of many noisy scores is biased below the lowest true
    score, the more so the more groups there are and the fewer rows they have, and the worst group's own interval does
    not account for the selection: all groups are reported. Quantiles are from the worst end: 0.1 is the worst decile
    (the 10th percentile over users of Amazon-WILDS: Koh et al., ICML 2021), 0.5 the median."""
    groups = scored.benchmark.view("ood")[0].row_metadata.get("group")
    names = [] if groups is None else sorted(set(groups.tolist()))
    if groups is None or not 2 <= len(names) <= MAX_GROUPS:
        return None, None
    every = {str(name): estimate_mean(rows.select(groups == name).by(by)) for name in names}
    known = {name: estimate for name, estimate in every.items() if estimate.defined}
    if not known:
        return None, None
    # On the recorded values, so that the worst group does not depend on the last bits.
    values = {name: round(estimate.value, 6) for name, estimate in known.items()}
    sign = 1 if by.better == "higher" else -1
    worst = min(values, key=lambda name: (sign * values[name], name))
    quantiles = compute_group_quantiles([*values.values()], QUANTILES, by.better)
    return WorstGroup(worst, known[worst], known), quantiles


def compute_group_quantiles(scores: Sequence[float], shares: Sequence[float], better: Better) -> dict[str, float]:
    """Compute quantiles of the groups' scores from the worst end, by share (Hyndman and Fan 1996, type 7), with six
    decimals."""
    at = {share: share if better == "higher" else 1 - share for share in shares}
    return {f"{share:g}": round(float(np.quantile(scores, quantile)), 6) for share, quantile in at.items()}


def compute_severity_curve(scored: RunPredictions, views: Views, by: Metric) -> list[SeverityPoint]:
    """Return the score by severity: points of the ID view, then of the OOD view, each in buckets of similar size."""
    curve = []
    for view, most in (("id", MAX_BUCKETS // 3), ("ood", MAX_BUCKETS - MAX_BUCKETS // 3)):
        severity = scored.benchmark.view(view)[0].row_metadata.get("severity")
        if severity is None:
            return []
        for low, high in _make_buckets(severity, most):
            estimate = estimate_mean(views[view].select((severity >= low) & (severity <= high)).by(by))
            if estimate.defined:
                curve.append(SeverityPoint(view, low, high, estimate))
    return curve


def _make_buckets(severity: NDArray[Any], most: int) -> list[tuple[Any, Any]]:
    """Return at most `most` ranges of severity with similar numbers of rows; single values if there are few."""
    values, counts = np.unique(severity, return_counts=True)
    if len(values) <= most:
        return [(value, value) for value in values.tolist()]
    share = np.minimum((np.cumsum(counts) - counts) * most // counts.sum(), most - 1)
    return [(values[share == k].min().item(), values[share == k].max().item()) for k in np.unique(share)]


def compute_extrapolation(scored: RunPredictions, views: Views, by: Metric) -> Extrapolation | None:
    """Return the area under the severity curve, and the severity at which the score halves; None without severities, or
    for a metric that is not a mean of rows between 0 and 1."""
    severities = [scored.benchmark.view(view)[0].row_metadata.get("severity") for view in ("id", "ood")]
    if by.per_row is None or by.bounds != (0.0, 1.0) or by.better == "lower":
        return None
    samples = [views[view].by(by) for view in ("id", "ood")]
    if any(severity is None for severity in severities):
        return None
    scores = np.concatenate([sample.scores for sample in samples if isinstance(sample, RowScores)], axis=1)
    inside = np.repeat([True, False], [len(views["id"].row_ids), len(views["ood"].row_ids)])
    severity = np.concatenate([np.asarray(values, np.float64) for values in severities])
    joint_clustering = make_clustering(views["id"].clusters).beside(make_clustering(views["ood"].clusters))
    return estimate_extrapolation(
        severity, scores, inside, _assign_groups([views["id"], views["ood"]]), joint_clustering
    )


def _assign_groups(views: list[AnsweredRows]) -> NDArray[np.int64]:
    """Return the jackknife group of each row of some views, concatenated. The number of groups is the smallest of the
    views': a group left out is left out of all views, and none has no rows."""
    groups = min(count_jackknife_groups(view.row_ids, view.clusters) for view in views)
    return np.concatenate([deal_rows(view.row_ids, view.clusters, groups) for view in views])


def compute_valley(scored: RunPredictions, views: Views, by: Metric) -> Valley | None:
    """Return the gap at each severity that ID and OOD rows share, and its peak; None if they share under three."""
    carried = {view: scored.benchmark.view(view)[0].row_metadata.get("severity") for view in ("id", "ood")}
    severities = {view: severity for view, severity in carried.items() if severity is not None}
    if len(severities) < 2 or by.better == "lower":
        return None
    shared = sorted(set.intersection(*(set(severity.tolist()) for severity in severities.values())))
    if not 3 <= len(shared) <= MAX_GROUPS:
        return None
    levels = {
        level: tuple(views[view].select(severities[view] == level).by(by) for view in ("id", "ood")) for level in shared
    }
    return find_valley(levels)  # type: ignore[arg-type]


def compute_calibration(views: Views) -> dict[str, Calibration] | None:
    """Return the bins of a reliability diagram and the expected calibration error, of ID and OOD, over all seeds; None
    if the model gave no class probabilities."""
    if not all(views[name].has_scores and views[name].task.type == "classification" for name in ("id", "ood")):
        return None
    ece = find_metric("ece")
    calibrations = {}
    for name in ("id", "ood"):
        state = reduce(ece.merge, views[name].states(ece))
        calibrations[name] = Calibration(round(ece.compute(state), 6), _list_bins(state))
    return calibrations


def _list_bins(state: State) -> list[CalibrationBin]:
    """Return the bins with rows; rows without a prediction are in none."""
    count = len(state["rows"]) - 1
    bins = zip(state["rows"].tolist(), state["confidence"].tolist(), state["hits"].tolist(), strict=True)
    return [
        CalibrationBin(
            low=round(number / count, 6),
            high=round((number + 1) / count, 6),
            rows=rows,
            confidence=round(confidence / rows, 6),
            accuracy=round(hits / rows, 6),
        )
        for number, (rows, confidence, hits) in enumerate(bins)
        if rows and number < count
    ]


def detect_label_errors(scored: RunPredictions, chosen: Chosen) -> LabelErrors | None:
    """Measure how well the model's uncertainty detects the wrong labels of the training part; None without corrupted
    labels, without predictions for the training part, or without class probabilities."""
    benchmark = scored.benchmark
    of_classes = benchmark.task.type == "classification"
    if benchmark.kind != "corrupted-label" or "train" not in benchmark.predicted_parts or not of_classes:
        return None
    part = benchmark.part("train")
    rows = scored.rows("train", part, part.observed_labels(), chosen)
    if not rows.has_scores:
        return None
    given = [
        answers.scores[np.arange(len(part)), part.observed_labels()]
        for answers in rows.answers
        if answers.scores is not None
    ]
    groups = assign_row_groups(part.row_ids, rows.clusters)
    return estimate_label_error_detection(-np.stack(given), part.corrupted, groups, make_clustering(rows.clusters))


def compute_composition(scored: RunPredictions, views: Views, by: Metric) -> Compositionality | NotAvailable | None:
    """Measure how often a row is wrong though all its components are right; None if no rows are composed of others."""
    composed = scored.benchmark.definition.composed
    if composed is None:
        return None
    if by.per_row is None:
        return NotAvailable(f"{by.signature} does not say whether a single row is right")
    composed_part, of = (scored.benchmark.view(name)[0] for name in (composed.view, composed.of))
    keys = of.numpy([composed.key])[composed.key]
    positions_by_key = {key: number for number, key in enumerate(keys.tolist())}
    named = composed_part.numpy(composed.parts)
    unknown = sorted(
        {str(key) for name in composed.parts for key in named[name].tolist() if key not in positions_by_key}
    )
    if unknown:
        where = f"{scored.benchmark.path}: composed"
        raise BadDefinition(f"{where}: no row of {composed.of} has {composed.key} {unknown[0]!r}")
    rights = [_find_right_rows(views[name], by) for name in (composed.view, composed.of)]
    positions = np.array([[positions_by_key[key] for key in named[name].tolist()] for name in composed.parts]).T
    return estimate_compositionality_gap(rights[0], rights[1][:, positions], views[composed.view].clusters)


def _find_right_rows(rows: AnsweredRows, by: Metric) -> NDArray[np.bool_]:
    """Return which rows are wholly right, shape (seeds, n)."""
    sample = rows.by(by)
    assert isinstance(sample, RowScores)
    right: NDArray[np.bool_] = sample.scores == by.bounds[1 if by.better == "higher" else 0]
    return right
