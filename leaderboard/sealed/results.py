"""The results of a board's windows: terms, the profile of the draw and, after the reveal, every team's score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ...benchmarks.runs.run import RunLike
from ...benchmarks.scoring.answered_rows import RunPredictions
from ...benchmarks.statistics.interval import NotAvailable, make_estimate
from ...benchmarks.statistics.paired_test import adjust_by_holm
from ...benchmarks.statistics.sample import RowScores, Sample
from ...benchmarks.statistics.variance_estimate import VarianceEstimate, compute_average, compute_two_sided_p
from ...core.documents import parse_json
from ..teams import make_display_names
from .drawing import VIEWS
from .published import SealedBenchmark, name_public_view
from .window import Window, find_window, get_utc_time, get_window_path, read_windows

if TYPE_CHECKING:
    from ..board_view import BoardView


def make_window_results(board: BoardView, window: str) -> dict[str, Any]:
    """The results of a window, as plain JSON: its terms and state, the comparison of its draw with the public test,
    and, once it is revealed, every team's score and contrast, with Holm's correction over the teams."""
    sealed_window = find_window(board.records(), window)
    scores = {digest: _read_score(board, sealed_window, digest) for digest in sealed_window.scores}
    contrasts = flag_contrasts([score.get("contrast", {}) for score in scores.values()])
    teams = {digest: (str(body["team"]), str(body["signed_by"])) for digest, body in sealed_window.answers.items()}
    names = make_display_names(teams.values())
    return {
        "terms": sealed_window.terms.record(),
        "commitment": sealed_window.commitment,
        "state": sealed_window.state(get_utc_time()),
        "answers": len(sealed_window.answers),
        "seed": None if sealed_window.secret is None else sealed_window.secret.hex(),
        "profile": read_profile(board, sealed_window),
        "entries": [
            {
                "team": names[teams[digest]],
                "model": sealed_window.answers[digest]["model"],
                "submission": digest,
                "signed_by": teams[digest][1],
                "score": score.get("score"),
                "contrast": contrast,
                "n/a": score.get("n/a"),
            }
            for (digest, score), contrast in zip(scores.items(), contrasts, strict=True)
        ],
    }


def list_window_results(board: BoardView) -> list[dict[str, Any]]:
    """The results of every window of a board, in the ledger's order."""
    return [make_window_results(board, name) for name in read_windows(board.records())]


def _read_score(board: BoardView, window: Window, digest: str) -> Mapping[str, Any]:
    path = get_window_path(window.name, "score", digest)
    score: dict[str, Any] = parse_json(board.read_file(path, window.scores[digest]["files"].get(path, "")), dict, path)
    return score


LEVEL = 0.05


def read_profile(board: BoardView, window: Window) -> dict[str, Any]:
    """The comparison of a window's draw with the public test, as published."""
    path = get_window_path(window.name, "profile")
    profile: dict[str, Any] = parse_json(board.read_file(path, window.opened["files"].get(path, "")), dict, path)
    return profile


def compute_contrast(sealed: SealedBenchmark, predictions: Any, card: RunLike) -> dict[str, dict[str, Any]]:
    """Public minus sealed score, for ID and OOD, each with its 95 % interval over rows and two-sided p-value; n/a with
    the reason if the metric is not defined on one of them. The labels must be known (`sealed.drawn`)."""
    assert sealed.drawn is not None
    scored = RunPredictions(sealed, predictions, card)
    chosen = scored.choose(sealed.rule(card.selection))
    metric = sealed.metrics[0]
    contrasts = {}
    for name in VIEWS:
        views = (name_public_view(name), name)
        samples = [scored.view(view, chosen).by(metric) for view in views]
        cells = [sealed.drawn.profiles[name].cells(sealed.view(view)[0]) for view in views]
        contrasts[name] = estimate_difference(samples, cells) | {"better": metric.better}
    return contrasts


def estimate_difference(samples: Sequence[Sample], cells: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The first sample's mean minus the second's: value, 95 % interval, p. `cells`: the cell of each of their rows."""
    left, right = samples
    per_seed = [a - b for a, b in zip(left.per_seed, right.per_seed, strict=True)]
    value = compute_average(per_seed)
    spreads = [estimate_cell_variance(sample, names) for sample, names in zip(samples, cells, strict=True)]
    reach = (left.bounds[0] - right.bounds[1], left.bounds[1] - right.bounds[0])
    estimate = make_estimate(value, spreads, [], reach)
    if not estimate.defined:
        return NotAvailable("not defined on these rows and answers").to_dict()
    return {
        **{name: round(getattr(estimate, name), 6) for name in ("value", "low", "high", "row_se")},
        "p": round(_compute_p_value(value, spreads), 6),
        "rows": [left.rows, right.rows],
        "per_seed": [round(seed_value, 6) for seed_value in per_seed],
    }


def estimate_cell_variance(sample: Sample, cells: Sequence[str]) -> VarianceEstimate:
    """The variance of a mean of rows, with the number of rows in each cell fixed. For a metric that is not a mean of
    rows, the jackknife's variance, which ignores cells and is larger."""
    pooled = sample.pooled()
    if not isinstance(pooled, RowScores):
        return pooled.spread()
    means = pooled.scores[0]
    names, codes, counts = np.unique(np.asarray(cells), return_inverse=True, return_counts=True)
    free = len(means) - len(names)
    if free < 1:
        return RowScores(pooled.scores, pooled.bounds).spread()
    residuals = means - (np.bincount(codes, means) / counts)[codes]
    # Scale the distances within cells about the common mean, so that only noise within cells is left.
    rescaled = means.mean() + residuals * sqrt((len(means) - 1) / free)
    return VarianceEstimate(RowScores(rescaled[None, :], pooled.bounds).spread().variance, free)


def _compute_p_value(value: float, spreads: Sequence[VarianceEstimate]) -> float:
    """The two-sided p-value of a difference: a t test with Satterthwaite's degrees of freedom."""
    parts = [spread for spread in spreads if spread.variance > 0]
    total = fsum(spread.variance for spread in parts)
    if total == 0:
        return float(value == 0)
    df = 1 / fsum((spread.variance / total) ** 2 / spread.df for spread in parts)
    return compute_two_sided_p(abs(value) / sqrt(total), df)


def flag_contrasts(contrasts: Sequence[Mapping[str, Mapping[str, Any]]]) -> list[dict[str, dict[str, Any]]]:
    """The contrasts of a window's entries, each with `p_holm` (Holm's correction over the entries, for each view) and
    `flag`: "better on public" or "worse on public" if `p_holm` is below 5 %; else empty."""
    entries = [{name: dict(record) for name, record in entry.items()} for entry in contrasts]
    for name in VIEWS:
        records = [entry[name] for entry in entries if "p" in entry.get(name, {})]
        adjusted = adjust_by_holm([record["p"] for record in records]).tolist()
        for record, p in zip(records, adjusted, strict=True):
            higher = record["value"] > 0
            better = "better" if higher == (record["better"] == "higher") else "worse"
            record |= {"p_holm": round(p, 6), "flag": f"{better} on public" if p < LEVEL else ""}
    return entries
