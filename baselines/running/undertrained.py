"""Find recorded results of baselines that have not learned the task in distribution, which say nothing about a shift.

The rule is that of every leaderboard table (benchmarks/scoring/trained_check.py). The constant answer is the recorded
`most-frequent`, or the score of guessing, whichever is better. A baseline marked under a quick budget was trained too
little, or is not meant for the task; its OOD score is no evidence for or against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.scoring.chance import compute_chance
from ...benchmarks.scoring.trained_check import TrainedCheck
from .recorded_scores import RecordedScore, read_recorded_scores

CONSTANT = "most-frequent"
SMOKE = "smoke run"
"""What the reason of a result begins with that is left out of tables."""


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
    """The marked recorded results of a benchmark, by baseline, each with the reason. If the best is less than half way
    from a constant prediction to a perfect score, all are smoke runs: the training was too short for the task."""
    scores = read_recorded_scores(benchmark) if known_scores is None else known_scores
    rule = make_trained_check(benchmark, scores)
    if rule is None:
        return {}
    perfect, sign = (replace(rule, best=1.0), 1) if rule.better == "higher" else (replace(rule, best=0.0), -1)
    if find_benchmark(benchmark).metrics[0].bounds == (0, 1) and sign * rule.best < sign * perfect.least:
        why = f"no recorded ID score is half way from a constant prediction to a perfect one ({perfect.least:.3g})"
        return dict.fromkeys(sorted(scores), f"{SMOKE}: {why}")
    return {name: why for name, score in sorted(scores.items()) if (why := rule.reason(score))}
