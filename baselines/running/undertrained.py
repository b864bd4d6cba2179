"""Which recorded results say nothing of a shift, since their baseline has not learnt the task in distribution.

The rule is that of every table (benchmarks/scoring/trained_check.py). The constant answer is the recorded
`most-frequent`, or what guessing scores, whichever is better. Under a quick budget a marked baseline was trained too
little, or is not for this task; its OOD score tells neither for nor against it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.scoring.chance import compute_chance
from ...benchmarks.scoring.trained_check import TrainedCheck
from .recorded_scores import RecordedScore, read_recorded_scores

CONSTANT = "most-frequent"


def make_trained_check(benchmark: str, known_scores: Mapping[str, RecordedScore] | None = None) -> TrainedCheck | None:
    """The rule on a benchmark, of its recorded results; None where no constant answer's score is known, or where no
    baseline is better than it."""
    scores = read_recorded_scores(benchmark) if known_scores is None else known_scores
    about = find_benchmark(benchmark)
    metric = about.metrics[0]
    constant = scores[CONSTANT].id.value if CONSTANT in scores else None
    return TrainedCheck.of(
        (compute_chance(metric, about.task), constant), (score.id.value for score in scores.values()), metric.better
    )


def find_undertrained(benchmark: str, known_scores: Mapping[str, RecordedScore] | None = None) -> dict[str, str]:
    """The recorded results of a benchmark that are marked, by baseline, each with the reason."""
    scores = read_recorded_scores(benchmark) if known_scores is None else known_scores
    rule = make_trained_check(benchmark, scores)
    return {} if rule is None else {name: why for name, score in sorted(scores.items()) if (why := rule.reason(score))}
