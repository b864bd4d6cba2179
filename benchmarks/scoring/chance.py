"""What guessing scores by a metric, and what nobody can better: the ends of a benchmark's normalised scale.

Both follow from the task and the metric alone. Guessing a class is naming each of them equally often, whatever the
truth: by accuracy, balanced accuracy, and macro-F1 of evenly distributed classes, that is right one time in `classes`;
probabilities that are all equal have a loss of ln(classes) nats, or 1 - 1/classes by Brier. A text is never guessed,
nor are its tokens. Metrics without such a level (an error in the units of the label, a calibration error, an average
precision, which depends on how common a class is) are left out of aggregates.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

from ..benchmark import Benchmark
from ..metrics import Metric
from ..model import Task
from ..statistics.normalised import Scale


def _one_in_classes(classes: int) -> float:
    return 1 / classes


_OF_CLASSES: dict[str, Callable[[int], float]] = {
    "accuracy": _one_in_classes,
    "balanced_accuracy": _one_in_classes,
    "macro_f1": _one_in_classes,
    "auroc": lambda _: 0.5,
    "nll": log,
    "brier": lambda classes: 1 - 1 / classes,
}
_OF_ALL = {"exact_match": 0.0, "token_accuracy": 0.0, "edit_similarity": 0.0, "pearson": 0.0}


def chance(metric: Metric, task: Task) -> float | None:
    """What guessing scores; None where the metric has no level of chance that the task fixes."""
    if metric.name in _OF_CLASSES and task.classes:
        return _OF_CLASSES[metric.name](task.classes)
    return _OF_ALL.get(metric.name)


def scale(benchmark: Benchmark) -> Scale | None:
    """The normalised scale of a benchmark's primary metric; None where it has none."""
    metric = benchmark.metrics[0]
    level = chance(metric, benchmark.task)
    return None if level is None else Scale(level, metric.bounds[1 if metric.better == "higher" else 0])
