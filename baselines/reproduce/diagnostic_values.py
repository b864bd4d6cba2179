"""Diagnostics of recorded baselines, which need no shifted labels; claims compare them with OOD scores.

Two diagnostics follow from the recorded predictions: the ID score, and how often two seeds of a network disagree on a
row, on the OOD rows or on the ID rows. The others are in `baselines/results/BENCHMARK/diagnostics.json`: for each
baseline the values of each seed's network, with the sha256 of the recorded file that has its predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import find_benchmark
from ...core.documents import read_json
from ...core.errors import BadRun, UnknownName, get_first_line
from ..recipe import find_recipe
from ..running.recorded_scores import RecordedScore, read_recorded_scores
from ..running.results import HOME, digest_result, get_recipe_name, get_result_path

Values = Mapping[str, Mapping[int, float]]
"""By baseline, by seed."""

ID = "ID score"
DISAGREEMENT = {"disagreement.ood": "ood", "disagreement.id": "id"}
"""By diagnostic, the view whose rows are compared."""
CONSTANT = "most-frequent"
"""The baseline with a constant answer: it is a reference, not a model."""


def pair_diagnostic_with_ood(
    diagnostic: str, benchmark: str, home: Path = HOME
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A diagnostic and the OOD score of the recorded baselines of a benchmark that have both, (baselines,) each: means
    over the seeds that have both. Losses are negated, so that a higher score is always better.

    Raises `UnknownName` for a diagnostic that no baseline has."""
    scores = {
        name: recorded_score
        for name, recorded_score in read_recorded_scores(benchmark, home).items()
        if name != CONSTANT
    }
    values = _read_values(diagnostic, benchmark, scores, home)
    pairs = []
    for name in sorted(set(values) & set(scores)):
        ood = _orient_seed_values(scores[name], scores[name].ood.per_seed)
        if seeds := sorted(set(values[name]) & set(ood)):
            pairs.append([np.mean([of[seed] for seed in seeds]) for of in (values[name], ood)])
    both = np.array(pairs, np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _read_values(diagnostic: str, benchmark: str, scores: Mapping[str, RecordedScore], home: Path) -> Values:
    if diagnostic == ID:
        return {
            name: _orient_seed_values(recorded_score, recorded_score.id.per_seed)
            for name, recorded_score in scores.items()
        }
    if diagnostic in DISAGREEMENT:
        networks = [name for name in scores if find_recipe(get_recipe_name(name)).estimator is None]
        return {name: _compute_disagreement(benchmark, name, DISAGREEMENT[diagnostic], home) for name in networks}
    inside = read_diagnostics(benchmark, home)
    known = {what for seeds in inside.values() for values in seeds.values() for what in values}
    if diagnostic not in known:
        raise UnknownName(f"diagnostic of recorded baselines on {benchmark}", diagnostic, known | {ID, *DISAGREEMENT})
    return {
        name: {seed: values[diagnostic] for seed, values in seeds.items() if diagnostic in values}
        for name, seeds in inside.items()
    }


def _orient_seed_values(recorded_score: RecordedScore, values: Any) -> dict[int, float]:
    sign = 1 if recorded_score.better == "higher" else -1
    return {seed: sign * value for seed, value in zip(recorded_score.seeds, values, strict=True)}


def _compute_disagreement(benchmark: str, name: str, view: str, home: Path) -> dict[int, float]:
    """The mean share of rows of a view on which a seed's answer differs from those of the other seeds; empty for
    numeric answers, or with one seed."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(get_result_path(home, benchmark, name), columns=["part", "seed", "prediction"])
    if pa.types.is_floating(table["prediction"].type) or pa.types.is_list(table["prediction"].type):
        return {}
    part = find_benchmark(benchmark).definition.views[view].part
    codes = pc.rank(table["prediction"].combine_chunks(), tiebreaker="dense").to_numpy()
    parts, seeds = table["part"].to_numpy(zero_copy_only=False), table["seed"].to_numpy()
    codes_by_seed = {int(seed): codes[(seeds == seed) & (parts == part)] for seed in np.unique(seeds)}
    if len(codes_by_seed) < 2 or not all(len(seed_codes) for seed_codes in codes_by_seed.values()):
        return {}
    return compute_mean_disagreement(codes_by_seed)


def compute_mean_disagreement(answers: Mapping[int, NDArray[Any]]) -> dict[int, float]:
    """By seed, the share of rows on which its answers (rows,) differ from those of another seed, on average."""
    total = dict.fromkeys(answers, 0.0)
    for left, right in combinations(answers, 2):
        share = float(np.mean(answers[left] != answers[right]))
        total[left] += share
        total[right] += share
    return {seed: value / (len(answers) - 1) for seed, value in total.items()}


def read_diagnostics(benchmark: str, home: Path = HOME) -> dict[str, dict[int, dict[str, float]]]:
    """The values of each baseline whose diagnostics belong to the current recorded file, by seed and
    `diagnostic.value`. `BadRun` if the file cannot be read."""
    file = home / benchmark.replace("/", "__") / "diagnostics.json"
    if not file.is_file():
        return {}
    try:
        return {
            name: {
                int(seed): {what: float(value) for what, value in values.items()}
                for seed, values in record["seeds"].items()
            }
            for name, record in sorted(read_json(file).items())
            if get_result_path(home, benchmark, name).is_file()
            and record["file"] == digest_result(benchmark, name, home)
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRun(f"{file} cannot be read as diagnostics of recorded results: {get_first_line(error)}") from error
