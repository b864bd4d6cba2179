"""Chance level and best possible score of a metric: the ends of a benchmark's normalised scale.

Both follow from the task and the metric only: a metric's file defines its chance level (`chance`). Metrics without one
(an error in the units of the label, a calibration error, an average precision, which depends on how common a class is)
are left out of aggregates.
"""

from __future__ import annotations

from ..benchmark import Benchmark
from ..metrics import Metric
from ..model import Task
from ..statistics.aggregate import Scale


def compute_chance(metric: Metric, task: Task) -> float | None:
    """Return the score of random guessing; None if the task does not determine it."""
    return None if metric.chance is None else metric.chance(task)


def make_scale(benchmark: Benchmark) -> Scale | None:
    """Return the normalised scale of a benchmark's primary metric; None if it has none."""
    metric = benchmark.metrics[0]
    level = compute_chance(metric, benchmark.task)
    return None if level is None else Scale(level, metric.bounds[1 if metric.better == "higher" else 0])
