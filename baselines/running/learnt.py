"""Which recorded results say nothing of a shift, since their baseline has not learnt the task in distribution.

The rule is that of every table (benchmarks/scoring/learnt.py). The constant answer is the recorded `most-frequent`, or
what guessing scores, whichever is better. Under a quick budget a marked baseline was trained too little, or is not for
this task; its OOD score tells neither for nor against it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.benchmark import find_benchmark
from ...benchmarks.scoring.chance import chance
from ...benchmarks.scoring.learnt import Learnt
from .recorded_scores import RecordedScore, kept_scores

CONSTANT = "most-frequent"


def learnt(benchmark: str, kept: Mapping[str, RecordedScore] | None = None) -> Learnt | None:
    """The rule on a benchmark, of its recorded results; None where no constant answer's score is known, or where no
    baseline is better than it."""
    scores = kept_scores(benchmark) if kept is None else kept
    about = find_benchmark(benchmark)
    metric = about.metrics[0]
    constant = scores[CONSTANT].id.value if CONSTANT in scores else None
    return Learnt.of((chance(metric, about.task), constant), (one.id.value for one in scores.values()), metric.better)


def not_learnt(benchmark: str, kept: Mapping[str, RecordedScore] | None = None) -> dict[str, str]:
    """The recorded results of a benchmark that are marked, by baseline, each with the reason."""
    scores = kept_scores(benchmark) if kept is None else kept
    rule = learnt(benchmark, scores)
    return {} if rule is None else {name: why for name, one in sorted(scores.items()) if (why := rule.reason(one))}
