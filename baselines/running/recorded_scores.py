"""The scores of recorded results, stored beside them so that they are listed without their benchmarks' data.

`baselines/results/BENCHMARK/scores.json`, or under the budget `full` `baselines/results/full/BENCHMARK/scores.json`,
has the scores of each baseline's predictions, with the sha256 of their file, the scorer and the entry's identity.
A score for another file, scorer or version of the benchmark is ignored.
`rescore_recorded` computes the same from the predictions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import SCORER, find_benchmark
from ...benchmarks.scoring.record import Score, format_estimate
from ...benchmarks.scoring.score import compute_chance, score
from ...benchmarks.scoring.trained_check import TrainedCheck
from ...benchmarks.statistics.interval import Estimate
from ...core.canonical import to_canonical_json
from ...core.documents import read_json
from ...core.errors import BadRun, get_first_line
from ...core.files import get_cache_root, hold_lock, write_atomically
from ...core.listings import Listing, has_words
from ...loaders.listing import check_known_name
from ...splits.manifest import KIND_WORDS, KINDS
from ..recipe import find_plugin_files, read_recipe
from .results import HOME, check_recorded, digest_result, find_recorded_run, get_recipe_name, get_results_home
from .results import list_results as recorded_results

_ESTIMATES = ("id", "ood", "gap")


@dataclass(frozen=True)
class RecordedScore:
    """The score of a recorded result by its benchmark's primary metric: ID, OOD and gap with 95 % intervals over rows
    and seeds."""

    benchmark: str
    model: str
    metric: str
    better: str
    budget: str
    steps: int | None
    selection: str
    seeds: tuple[int, ...]
    scorer: int
    entry_identity: str
    id: Estimate
    ood: Estimate
    gap: Estimate

    @classmethod
    def of(cls, full_score: Score) -> RecordedScore:
        """The part of a score that is listed."""
        return cls(**{name: getattr(full_score, name) for name in cls.__dataclass_fields__})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RecordedScore:
        """The inverse of `to_dict`; `KeyError` or `TypeError` for any other record."""
        read = {name: Estimate.from_dict(record[name]) for name in _ESTIMATES}
        return cls(**{**record, **read, "seeds": tuple(record["seeds"])})

    @property
    def in_percent(self) -> bool:
        """Whether the metric is in [0, 1], and so is shown in percent."""
        return find_benchmark(self.benchmark).metrics[0].bounds == (0, 1)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        estimates = {name: getattr(self, name).to_dict() for name in _ESTIMATES}
        return self.__dict__ | estimates | {"seeds": list(self.seeds)}


def read_recorded_scores(benchmark: str, home: Path = HOME) -> dict[str, RecordedScore]:
    """The stored scores of the recorded results on a benchmark, by baseline, if they match the file, the scorer and the
    benchmark of this installation. `BadRun` if scores.json cannot be read."""
    try:
        records = _read_records(benchmark, home)
        scores_by_name = {
            name: (record.pop("file"), RecordedScore.from_dict(record)) for name, record in records.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRun(
            f"{_get_scores_path(benchmark, home)} cannot be read as scores of recorded results: {get_first_line(error)}"
        ) from error
    identify = lru_cache(find_benchmark(benchmark).identity)  # of few protocols, and it reads every selection rule
    return {
        name: recorded_score
        for name, (file, recorded_score) in scores_by_name.items()
        if recorded_score.scorer == SCORER
        and recorded_score.entry_identity
        == identify(recorded_score.budget, recorded_score.steps, recorded_score.selection)
        and file == digest_result(benchmark, name, home)
    }


def results(
    search: str = "",
    *,
    on: str | None = None,
    baseline: str | None = None,
    kind: str | None = None,
    budget: str = "quick",
) -> Listing[RecordedScore]:
    """List the stored scores of the recorded results under a budget, by benchmark, the best OOD score first. Nothing is
    opened or computed: a result whose stored score is of another version is left out (`farshift baselines results`
    scores it again).

    search: words that must all occur in a result's benchmark, its kind of shift, its title, its baseline or its metric.
    on: a benchmark. budget: `quick` or `full`. Raises `FarshiftError` for a benchmark without recorded results, or an
    unknown baseline, kind or budget.

    >>> import farshift as fs
    >>> best = fs.results(on="scan/length")[0]
    >>> best.metric, len(best.seeds)
    ('exact_match@1', 5)
    """
    home = get_results_home(budget)
    known = recorded_results(home)
    if on is not None:
        check_recorded(on, {benchmark for benchmark, _ in known})
    check_known_name("baseline with recorded results", baseline, {name for _, name in known})
    check_known_name("kind of shift", kind, KINDS)
    matches = []
    for benchmark in sorted({benchmark for benchmark, _ in known}):
        if on not in (None, benchmark):
            continue
        about = find_benchmark(benchmark)
        if kind not in (None, about.kind):
            continue
        for recorded_score in read_recorded_scores(benchmark, home).values():
            texts = (
                recorded_score.benchmark,
                KIND_WORDS[about.kind],
                about.definition.title,
                recorded_score.model,
                recorded_score.metric,
            )
            if baseline in (None, recorded_score.model) and has_words(search, *texts):
                matches.append(recorded_score)
    return Listing(sort_best_first(matches), "result", _format_score)


def sort_best_first(scores: Sequence[RecordedScore]) -> list[RecordedScore]:
    """Sort by benchmark, then by OOD score, best first by its metric."""
    return sorted(scores, key=lambda r: (r.benchmark, r.ood.value * (-1 if r.better == "higher" else 1), r.model))


def _format_score(recorded_score: RecordedScore) -> dict[str, Any]:
    scores = {name: format_estimate(getattr(recorded_score, name)) for name in _ESTIMATES}
    return (
        {"benchmark": recorded_score.benchmark, "baseline": recorded_score.model}
        | scores
        | {"metric": recorded_score.metric, "seeds": len(recorded_score.seeds)}
    )


def rescore_recorded(benchmark: str, name: str, home: Path = HOME) -> Score:
    """Compute the score of a recorded result from its predictions. Opens the benchmark's data."""
    return score(find_recorded_run(benchmark, name, home))


def write_recorded_score(new_score: Score, home: Path = HOME) -> None:
    """Store the score of a result that is recorded in `home`."""
    path = _get_scores_path(new_score.benchmark, home)
    with hold_lock(get_cache_root() / "recorded" / path.parent.name):
        records = _read_records(new_score.benchmark, home)
        file = digest_result(new_score.benchmark, new_score.model, home)
        records[new_score.model] = {"file": file, **RecordedScore.of(new_score).to_dict()}
        lines = [f"{json.dumps(name)}: {to_canonical_json(records[name]).decode()}" for name in sorted(records)]
        write_atomically(path, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def _get_scores_path(benchmark: str, home: Path) -> Path:
    return home / benchmark.replace("/", "__") / "scores.json"


def _read_records(benchmark: str, home: Path) -> dict[str, dict[str, Any]]:
    path = _get_scores_path(benchmark, home)
    records: dict[str, dict[str, Any]] = read_json(path, dict, str(path)) if path.is_file() else {}
    return records


CONSTANT = "most-frequent"
"""The baseline with a constant answer: it is a reference, not a model."""
SMOKE = "smoke run"
"""What the reason of a result begins with that is left out of tables."""


def make_trained_check(benchmark: str, known_scores: Mapping[str, RecordedScore] | None = None) -> TrainedCheck | None:
    """The rule on a benchmark, from its recorded results; None if there are none, or no constant answer's score is
    known."""
    scores = read_recorded_scores(benchmark) if known_scores is None else known_scores
    about = find_benchmark(benchmark)
    metric = about.metrics[0]
    constant = scores[CONSTANT].id.value if CONSTANT in scores else None
    return TrainedCheck.of(
        (compute_chance(metric, about.task), constant), (score.id.value for score in scores.values()), metric.better
    )


def find_low_id_scores(benchmark: str, known_scores: Mapping[str, RecordedScore] | None = None) -> dict[str, str]:
    """The marked recorded results of a benchmark, by baseline, each with the reason. If the best is less than half way
    from a constant prediction to a perfect score, all are smoke runs: the training was too short for the task. It was
    not if a scikit-learn model, which no budget shortens, may be as good as the best."""
    scores = read_recorded_scores(benchmark) if known_scores is None else known_scores
    rule = make_trained_check(benchmark, scores)
    if rule is None:
        return {}
    perfect, sign = (replace(rule, best=1.0), 1) if rule.better == "higher" else (replace(rule, best=0.0), -1)
    far = find_benchmark(benchmark).metrics[0].bounds == (0, 1) and sign * rule.best < sign * perfect.least
    recipes = find_plugin_files("recipes") if far else {}
    if far and not any(
        sign * (score.id.high if sign > 0 else score.id.low) >= sign * rule.best
        for name, score in scores.items()
        if name != CONSTANT and (file := recipes.get(get_recipe_name(name))) and read_recipe(file).estimator
    ):
        why = f"no recorded ID score is half way from a constant prediction to a perfect one ({perfect.least:.3g})"
        return dict.fromkeys(sorted(scores), f"{SMOKE}: {why}")
    return {name: why for name, score in sorted(scores.items()) if (why := rule.reason(score))}
