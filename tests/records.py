"""Scores as scoring gives them, made up: for pictures, tables and exports."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
from farshift.benchmarks.scoring.record import Score, SeverityPoint, WorstGroup
from farshift.benchmarks.statistics.interval import Estimate


def estimate(value: float, reach: float = 0.02, rows: int = 900, seeds: int = 5, least: float = 0.0) -> Estimate:
    """A value in [least, 1] and an interval of `reach` to each side, cut at the bounds."""
    low, high = max(least, value - reach), min(1.0, value + reach)
    value, low, high = (round(end, 6) for end in (value, low, high))
    seed_se = round(reach / 4, 6) if seeds > 1 else None
    return Estimate(value, low, high, round(reach / 3, 6), seed_se, rows, seeds, (value,) * seeds)


def curve(
    id_value: float,
    ood_value: float,
    seeds: int = 5,
    ids=((1, 8), (9, 15), (16, 19), (20, 22)),
    oods=(24, 25, 26, 27, 28, 30, 32, 33, 36, 40, 48),
) -> list[SeverityPoint]:
    """Scores that fall along severity: flat on ID rows, then from the ID score downwards, around the OOD score."""
    points = [SeverityPoint("id", low, high, estimate(id_value, seeds=seeds)) for low, high in ids]
    for step, level in enumerate(np.linspace(1, -1, len(oods)).tolist()):
        value = min(1.0, max(0.0, ood_value + level * min(ood_value, id_value - ood_value, 1 - ood_value)))
        points.append(SeverityPoint("ood", oods[step], oods[step], estimate(value, 0.05, seeds=seeds)))
    return points


def bins(accuracy: float, rows: int, overconfident: float = 0.1) -> list[dict[str, Any]]:
    """Fifteen bins of confidence, fuller towards 1, whose accuracy lies `overconfident` below the confidence."""
    edges = np.linspace(0, 1, 16)
    share = np.linspace(0, 1, 15) ** 3 * accuracy + 0.01
    counts = np.floor(share / share.sum() * rows).astype(int)
    counts[0] = 0
    counts[-1] += rows - counts.sum()
    result = []
    for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True):
        middle = (low + high) / 2
        right = min(1.0, max(0.0, middle - overconfident * middle))
        result.append(
            {
                "from": round(low, 6),
                "to": round(high, 6),
                "rows": count,
                "confidence": round(middle, 6),
                "accuracy": round(right, 6),
            }
        )
    return [item for item in result if item["rows"]]


def record(
    model: str = "lstm",
    benchmark: str = "scan/length",
    *,
    kind: str = "length",
    id: float = 0.95,
    ood: float = 0.2,
    reach: float = 0.02,
    rows: int = 900,
    seeds: int = 5,
    budget: str = "full",
    steps: int | None = None,
    selection: str = "last",
    metric: str = "exact_match@1",
    better: str = "higher",
    bounds: list[float | None] | None = [0.0, 1.0],  # noqa: B006
    identity: str = "",
    severity: list[SeverityPoint] | None = None,
    severity_unit: str = "tokens",
    probabilities: bool = False,
    groups: dict[str, float] | None = None,
) -> Score:
    """A whole score. Entries of one benchmark, budget and steps have one identity, unless another is given."""
    views = {"id": estimate(id, reach, rows, seeds), "ood": estimate(ood, reach, rows, seeds)}
    if kind == "corrupted-label":
        wrong = {"restored": ood, "memorised": 0.9 * (1 - ood), "fit_clean": (1 + id) / 2}
        views |= {name: estimate(value, reach, rows, seeds) for name, value in wrong.items()}
    result = {name: estimate(value, 2 * reach, rows // 5, seeds) for name, value in (groups or {}).items()}
    worst = min(result, key=lambda name: (result[name].value, name), default=None)
    over = f"rows and {seeds} training seeds" if seeds > 1 else "rows only (one seed: training noise is not in it)"
    points = curve(id, ood, seeds) if severity is None and kind == "length" else severity or []
    return Score.from_dict(
        {
            "scorer": 2,
            "benchmark": benchmark,
            "kind": kind,
            "entry_identity": identity or sha256(f"{benchmark} {budget} {steps}".encode()).hexdigest(),
            "model": model,
            "budget": budget,
            "steps": steps,
            "seeds": list(range(seeds)),
            "protocol_seeds": 5,
            "selection": selection,
            "metric": metric,
            "better": better,
            "bounds": bounds,
            "id": views["id"].to_dict(),
            "ood": views["ood"].to_dict(),
            "gap": estimate(id - ood, 1.4 * reach, 2 * rows, seeds, least=-1.0).to_dict(),
            "views": {name: item.to_dict() for name, item in views.items()},
            "metrics": {},
            "answers": {},
            "selections": {},
            "worst_group": None if worst is None else WorstGroup(worst, result[worst], result).to_dict(),
            "group_quantiles": None,
            "severity": [point.to_dict() for point in points],
            "severity_unit": severity_unit,
            "extrapolation": None,
            "calibration": {
                "id": {"ece": 0.031, "bins": bins(id, rows * seeds, 0.05)},
                "ood": {"ece": 0.214, "bins": bins(ood, 4 * rows * seeds, 0.3)},
            }
            if probabilities
            else None,
            "label_errors": None,
            "spent": {"fit_seconds": 12.1, "predict_seconds": 1.2, "device": "cpu"},
            "interval": f"[low, high]: 95% t interval over {over}",
        }
    )


MODELS = (
    *("lstm", "transformer", "syntactic-attention", "lstm-aligned", "mlp", "quadratic-mlp-weight-decay", "knn"),
    *("logistic-regression", "lstm-weight-decay", "transformer-weight-decay", "quadratic-mlp", "my-model"),
)


def many(count: int, benchmark: str = "scan/length", **settings: Any) -> list[Score]:
    """Scores of `count` models whose ID and OOD scores lie about a line on logit axes."""
    draws = np.random.default_rng(count)
    strength = np.sort(draws.normal(1.5, 1.2, count))[::-1]
    off = draws.normal(0, 0.4, count)
    return [
        record(model, benchmark, **{"id": 1 / (1 + np.exp(-s)), "ood": 1 / (1 + np.exp(2 - 0.8 * s - e))} | settings)
        for model, s, e in zip(MODELS, strength.tolist(), off.tolist(), strict=False)
    ]
