"""A run of answers that are there already: no model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..answers import Answers
from ..benchmark import Benchmark
from ..blind.data import blind_data
from ..harness.evaluate import begin, seed_numbers
from ..model import Budget
from .run import Run
from .shards import Shard

_CANDIDATE = "last"


def write_recorded_run(
    benchmark: Benchmark,
    out: Path,
    model: dict[str, Any],
    answers: Sequence[Mapping[str, Answers]],
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    seeds: Sequence[int] | None = None,
    selection: str | None = None,
) -> Run:
    """Write a finished run into the folder `out`; one that holds this very run is given back.

    model: what the run card says of the model: `name`, `kind`, `code` (a digest), and whatever else there is to say.
    answers: for each of `seeds` (0, 1, 2 .. where not given) the answers to every predicted part, by its name, in the
    order of its rows.

    Raises `FarshiftError` for a name that no run card takes or more seeds than a run may have, `BadRun` where the
    folder holds anything else.
    """
    blind = blind_data(benchmark)
    numbers = seed_numbers(len(answers) if seeds is None else seeds, benchmark, budget.name)
    with begin(benchmark, out, model, budget, numbers, selection) as folder:
        for seed in folder.missing():
            job = folder.job(seed, "main", benchmark.task)
            for name in benchmark.predicted_parts:
                inputs = blind.part(name)
                job.asks(_CANDIDATE, inputs)
                with Shard(job, _CANDIDATE, inputs) as shard:
                    shard.add(0, len(inputs), inputs.row_ids, answers[numbers.index(seed)][name])
            job.finish({}, [])
            folder.finish_seed(seed, [job])
        return folder.finish()
