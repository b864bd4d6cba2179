"""A run of answers that are there already: no model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import BadRun
from ..answers import Answers
from ..benchmark import Benchmark
from ..blind.data import load_model_inputs
from ..blind.rows import Inputs, ModelInputs
from ..harness.evaluate import begin_run, list_seeds
from ..model import Budget
from .run import Run
from .shards import Shard

ONLY = "last"
"""The candidate of a model that has one."""


def write_recorded_run(
    benchmark: Benchmark,
    out: Path,
    model: dict[str, Any],
    answers: Sequence[Mapping[str, Mapping[str, Answers]]],
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    seeds: Sequence[int] | None = None,
    selection: str | None = None,
) -> Run:
    """Write a finished run into the folder `out`; one that holds this very run is given back.

    model: what the run card says of the model: `name`, `kind`, `code` (a digest), and whatever else there is to say.
    answers: for each of `seeds` (0, 1, 2 .. where not given) and candidate the answers to every predicted part, by its
    name, in the order of its rows; under the name of the run's selection rule, where it asks for rows of its own, those
    to its ballot. Each candidate is the last checkpoint of a setting.

    Raises `FarshiftError` for a name that no run card takes or more seeds than a run may have, `BadRun` where the
    folder holds anything else, or a part has no answers.
    """
    blind = load_model_inputs(benchmark)
    rows = list_predicted_inputs(benchmark, blind, selection)
    for part_inputs in rows:
        if any(part_inputs.name not in parts for each in answers for parts in each.values()):
            raise BadRun(f"{benchmark.name}: there are no answers to {part_inputs.name}")
    numbers = list_seeds(len(answers) if seeds is None else seeds, benchmark, budget.name)
    with begin_run(benchmark, out, model, budget, numbers, selection) as folder:
        for seed in folder.missing():
            jobs = []
            for number, (candidate, parts) in enumerate(answers[numbers.index(seed)].items()):
                job = folder.job(seed, "main" if candidate == ONLY else f"candidate-{number}", benchmark.task)
                for inputs in rows:
                    job.asks(candidate, inputs)
                    with Shard(job, candidate, inputs) as shard:
                        shard.add(0, len(inputs), inputs.row_ids, parts[inputs.name])
                job.finish({}, [])
                jobs.append(job)
            folder.finish_seed(seed, jobs)
        return folder.finish()


def list_predicted_inputs(benchmark: Benchmark, blind: ModelInputs, selection: str | None) -> list[Inputs]:
    """The rows that a candidate answers: those of every predicted part, and those that a selection rule asks for in a
    part of its own (its folds), whose inputs are left out."""
    inputs = [blind.part(name) for name in benchmark.predicted_parts]
    rule = benchmark.rule(selection)
    if rule.folds is not None:
        ballot = rule.ballot(benchmark)
        assert ballot is not None  # a rule with folds judges what they answer
        inputs.append(Inputs(rule.part, ballot.row_ids, {}))
    return inputs
