"""The difficulty profile of rows (the number of rows in each cell of severity x group x class), and the two-sample
Kolmogorov-Smirnov statistic of a measure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import exp, fsum, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.model import Task
from ...loaders.part import Part

MOST_VALUES = 200
BUCKETS = 10
"""If the public test has more than 200 distinct severities, cells use deciles; otherwise each severity is a cell."""


@dataclass(frozen=True)
class Profile:
    """The cells of a view, defined by its public rows and applied to any rows."""

    task: Task
    edges: NDArray[Any] | None

    @classmethod
    def of(cls, public: Part, task: Task) -> Profile:
        severity = public.row_metadata.get("severity")
        if severity is None or len(np.unique(severity)) <= MOST_VALUES:
            return cls(task, None)
        return cls(task, np.unique(np.quantile(severity, np.arange(1, BUCKETS) / BUCKETS)))

    def cells(self, rows: Part) -> list[str]:
        """The name of each row's cell, for example "severity 12, group 11-20, class 3"."""
        columns: list[list[str]] = []
        severity = rows.row_metadata.get("severity")
        if severity is not None and self.edges is None:
            columns.append([f"severity {value}" for value in severity.tolist()])
        elif severity is not None:
            assert self.edges is not None
            tenth = np.searchsorted(self.edges, severity, side="right")
            columns.append([f"severity in tenth {value + 1}" for value in tenth.tolist()])
        if "group" in rows.row_metadata:
            columns.append([f"group {value}" for value in rows.row_metadata["group"].tolist()])
        if self.task.type == "classification":
            columns.append([f"class {value}" for value in rows.true_labels().tolist()])
        return [", ".join(values) for values in zip(*columns, strict=True)] if columns else ["all"] * len(rows)

    def counts(self, rows: Part) -> dict[str, int]:
        """The number of rows in each cell, sorted by the cells' names."""
        return dict(sorted(Counter(self.cells(rows)).items()))


def compare_samples(left: NDArray[Any], right: NDArray[Any]) -> dict[str, float]:
    """The largest distance between the distribution functions of two samples, and its asymptotic p-value by the series
    of Kolmogorov (1933); conservative for repeated values."""
    left, right = np.sort(left), np.sort(right)
    every = np.concatenate([left, right])
    steps = [np.searchsorted(sample, every, side="right") / len(sample) for sample in (left, right)]
    distance = float(np.abs(steps[0] - steps[1]).max())
    scaled = sqrt(len(left) * len(right) / (len(left) + len(right))) * distance
    return {"distance": round(distance, 6), "p": round(_compute_kolmogorov_tail(scaled), 6)}


def _compute_kolmogorov_tail(x: float) -> float:
    """P(K > x) for Kolmogorov's distribution."""
    if x < 0.2:  # the series converges slowly there, and is 1 to twelve digits
        return 1.0
    return min(1.0, max(0.0, 2 * fsum((-1.0) ** (k - 1) * exp(-2 * (k * x) ** 2) for k in range(1, 101))))


def measure_fields(rows: Part, fields: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """One number for each row and field: the length of a text, the mean of a tensor's elements, the value of a number.
    A function of these fields only."""
    measures: dict[str, NDArray[Any]] = {}
    for name, values in rows.numpy(fields).items():
        if values.dtype == object:
            measures[f"length of {name}"] = np.array([len(value) for value in values.tolist()])
        elif values.ndim > 1:
            measures[f"mean of {name}"] = values.reshape(len(values), -1).mean(axis=1, dtype=np.float64)
        else:
            measures[name] = values
    return measures


def compare_fields(public: Part, sealed: Part, fields: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """The two-sample comparison of every measure of these fields."""
    ours, theirs = measure_fields(public, fields), measure_fields(sealed, fields)
    return {name: compare_samples(ours[name], theirs[name]) for name in sorted(ours)}
