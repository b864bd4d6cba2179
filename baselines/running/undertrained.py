"""Find recorded results of baselines that have not learned the task in distribution, which say nothing about a shift.

The rule is that of every leaderboard table (benchmarks/scoring/trained_check.py). The constant answer is the recorded
`most-frequent`, or the score of guessing, whichever is better. A baseline marked under a quick budget was trained too
little, or is not meant for the task; its OOD score is no evidence for or against it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.scoring.chance import compute_chance
from ...benchmarks.scoring.trained_check import TrainedCheck
from .recorded_scores import RecordedScore, read_recorded_scores

CONSTANT = "most-frequent"


def make_trained_check(benchmark: str, known_scores: Mapping[str, RecordedScore] | None = None) -> TrainedCheck | None:
    """The rule on a benchmark, from its recorded results; None if no constant answer's score is known, or if no
    baseline is better than it."""
    scores = read_recorded_scores(benchmark) if known_scores is None else known_scores
    about = find_benchmark(benchmark)
    metric = about.metrics[0]
    constant = scores[CONSTANT].id.value if CONSTANT in scores else None
    return TrainedCheck.of(
        (compute_chance(metric, about.task), constant), (score.id.value for score in scores.values()), metric.better
    )


def find_undertrained(benchmark: str, known_scores: Mapping[str, RecordedScore] | None = None) -> dict[str, str]:
    """The marked recorded results of a benchmark, by baseline, each with the reason."""
    scores = read_recorded_scores(benchmark) if known_scores is None else known_scores
    rule = make_trained_check(benchmark, scores)
    return {} if rule is None else {name: why for name, score in sorted(scores.items()) if (why := rule.reason(score))}
