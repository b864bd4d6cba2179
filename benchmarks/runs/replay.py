"""A run from existing predictions, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import BadRun
from ..answers import Answers
from ..benchmark import Benchmark
from ..harness.evaluate import begin_run, list_seeds
from ..model import Budget
from ..model_inputs.load import load_model_inputs
from ..model_inputs.rows import ModelInputs, ModelRows
from .run import Run
from .shards import Shard

ONLY = "last"
"""The name of the candidate of a model with a single one."""


def write_recorded_run(
    benchmark: Benchmark,
    out: Path,
    model: dict[str, Any],
    answers: Sequence[Mapping[str, Mapping[str, Answers]]],
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    seeds: Sequence[int] | None = None,
    selection: str | None = None,
) -> Run:
    """Write a finished run into the folder `out`; if the folder already has this run, return it.

    model: the run card's description of the model: `name`, `kind`, `code` (a digest), and other keys. answers: for each
    of `seeds` (by default 0, 1, 2 ..) and candidate the predictions for each predicted part, by its name, in the order
    of its rows; if the run's selection rule needs additional rows, also those for its selection data, by the rule's
    name. Each candidate is the last checkpoint of a setting.

    Raises `FarshiftError` for an invalid name or too many seeds, `BadRun` if the folder has other content, or a part
    has no predictions.
    """
    model_inputs = load_model_inputs(benchmark)
    rows = list_predicted_inputs(benchmark, model_inputs, selection)
    for part_inputs in rows:
        if any(part_inputs.name not in parts for each in answers for parts in each.values()):
            raise BadRun(f"{benchmark.name}: there are no predictions for {part_inputs.name}")
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


def list_predicted_inputs(benchmark: Benchmark, model_inputs: ModelInputs, selection: str | None) -> list[ModelRows]:
    """List the rows that a candidate predicts: those of each predicted part, and the additional rows of a selection
    rule (its folds), without their inputs."""
    inputs = [model_inputs.part(name) for name in benchmark.predicted_parts]
    rule = benchmark.rule(selection)
    if rule.folds is not None:
        ballot = rule.ballot(benchmark)
        assert ballot is not None  # a rule with folds has selection data
        inputs.append(ModelRows({}, ballot.row_ids, rule.part))
    return inputs
