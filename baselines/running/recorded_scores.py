"""The scores of recorded results, kept beside them so that they are listed without their benchmarks' data.

`baselines/results/BENCHMARK/scores.json`, or under the budget `full` `baselines/results/full/BENCHMARK/scores.json`,
has for each baseline what its predictions came to, with the sha256 of their file, the scorer and the entry's identity.
A score of another file, scorer or version of the benchmark is not taken.
`rescored` computes the same from the predictions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import SCORER, Benchmark, find_benchmark
from ...benchmarks.scoring.record import Score, in_words
from ...benchmarks.scoring.score import score
from ...benchmarks.statistics.interval import Estimate
from ...core.canonical import canonical_json
from ...core.errors import BadRun, first_line
from ...core.files import cache_root, locked, write_atomically
from ...core.listings.listing import Listing, has_words
from ...loaders.listing import known_name
from ...splits.manifest import KINDS
from .results import HOME, digest_of, home_of, recorded
from .results import results as recorded_results

_ESTIMATES = ("id", "ood", "gap")


@dataclass(frozen=True)
class RecordedScore:
    """What a recorded result came to by its benchmark's primary metric: ID, OOD and gap with 95 % intervals over rows
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
    def of(cls, found: Score) -> RecordedScore:
        """The part of a score that is listed."""
        return cls(**{name: getattr(found, name) for name in cls.__dataclass_fields__})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RecordedScore:
        """What `to_dict` wrote; `KeyError` or `TypeError` where it is something else."""
        read = {name: Estimate.from_dict(record[name]) for name in _ESTIMATES}
        return cls(**{**record, **read, "seeds": tuple(record["seeds"])})

    @property
    def in_percent(self) -> bool:
        """Whether the metric lies in [0, 1], and so is listed in percent."""
        return find_benchmark(self.benchmark).metrics[0].bounds == (0, 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        estimates = {name: getattr(self, name).to_dict() for name in _ESTIMATES}
        return self.__dict__ | estimates | {"seeds": list(self.seeds)}


def kept_scores(benchmark: str, home: Path = HOME) -> dict[str, RecordedScore]:
    """The kept scores of the recorded results on a benchmark, by baseline: those that are of the file, the scorer and
    the benchmark that are here. `BadRun` where scores.json cannot be read."""
    try:
        records = _read(benchmark, home)
        found = {name: (record.pop("file"), RecordedScore.from_dict(record)) for name, record in records.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRun(f"{_place(benchmark, home)} holds no scores of recorded results: {first_line(error)}") from error
    known = find_benchmark(benchmark)
    return {
        name: one
        for name, (file, one) in found.items()
        if file == digest_of(benchmark, name, home) and _current(known, one)
    }


def results(
    search: str = "",
    *,
    on: str | None = None,
    baseline: str | None = None,
    kind: str | None = None,
    budget: str = "quick",
) -> Listing[RecordedScore]:
    """The kept scores of the recorded results under a budget, by benchmark, the best OOD score first. Nothing is opened
    or computed: a result whose kept score is of another version is left out (`farshift baselines results` scores it
    again).

    search: words that all stand in a result's benchmark, its kind of shift, its title, its baseline or its metric. on:
    a benchmark. budget: `quick` or `full`. Raises `UnknownName` for a benchmark without recorded results, or a
    baseline, a kind or a budget that there is not.

    >>> import farshift as fs
    >>> best = fs.results(on="scan/length")[0]
    >>> best.metric, len(best.seeds)
    ('exact_match@1', 5)
    """
    home = home_of(budget)
    known = recorded_results(home)
    known_name("benchmark with recorded results", on, {benchmark for benchmark, _ in known})
    known_name("baseline with recorded results", baseline, {name for _, name in known})
    known_name("kind of shift", kind, KINDS)
    found = []
    for benchmark in sorted({benchmark for benchmark, _ in known}):
        if on not in (None, benchmark):
            continue
        about = find_benchmark(benchmark)
        if kind not in (None, about.kind):
            continue
        for one in kept_scores(benchmark, home).values():
            texts = (one.benchmark, about.kind, about.definition.title, one.model, one.metric)
            if baseline in (None, one.model) and has_words(search, *texts):
                found.append(one)
    return Listing(best_first(found), "result", _shown)


def best_first(found: Sequence[RecordedScore]) -> list[RecordedScore]:
    """By benchmark, the best OOD score first, whatever its metric calls better."""
    return sorted(found, key=lambda r: (r.benchmark, r.ood.value * (-1 if r.better == "higher" else 1), r.model))


def _shown(one: RecordedScore) -> dict[str, Any]:
    scores = {name: in_words(getattr(one, name)) for name in _ESTIMATES}
    return (
        {"benchmark": one.benchmark, "baseline": one.model} | scores | {"metric": one.metric, "seeds": len(one.seeds)}
    )


def rescored(benchmark: str, name: str, home: Path = HOME) -> Score:
    """The score of a recorded result, computed from its predictions. Opens the benchmark's data."""
    return score(recorded(benchmark, name, home))


def keep(found: Score, home: Path = HOME) -> None:
    """Keep the score of a result that is recorded in `home`."""
    place = _place(found.benchmark, home)
    with locked(cache_root() / "recorded" / place.parent.name):
        records = _read(found.benchmark, home)
        file = digest_of(found.benchmark, found.model, home)
        records[found.model] = {"file": file, **RecordedScore.of(found).to_dict()}
        lines = [f"{json.dumps(name)}: {canonical_json(records[name]).decode()}" for name in sorted(records)]
        write_atomically(place, ("{\n" + ",\n".join(lines) + "\n}\n").encode())


def _current(benchmark: Benchmark, found: RecordedScore) -> bool:
    identity = benchmark.identity(found.budget, found.steps, found.selection)
    return (found.scorer, found.entry_identity) == (SCORER, identity)


def _place(benchmark: str, home: Path) -> Path:
    return home / benchmark.replace("/", "__") / "scores.json"


def _read(benchmark: str, home: Path) -> dict[str, dict[str, Any]]:
    place = _place(benchmark, home)
    found: dict[str, dict[str, Any]] = json.loads(place.read_bytes()) if place.is_file() else {}
    return found
