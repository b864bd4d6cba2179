"""The harness, which evaluates a model on a benchmark.

Per seed and setting: a new model is trained (if it can be) on the inputs and observed labels of `train`, then each of
its checkpoints predicts every part, in batches of inputs only. The labels that it is scored by are not in this process:
everything is read from the benchmark's model inputs.
"""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from ...core.errors import BadRun, FarshiftError, shorten_list
from ...core.progress import log_message
from ...core.settings import get_version
from ...core.text import format_count
from ...core.world import SINGLE_PROCESS, World, check_device, get_world
from ..answers import Answers
from ..benchmark import Benchmark, find_benchmark
from ..fingerprint import compute_fingerprint
from ..model import Budget
from ..model_inputs.load import load_model_inputs
from ..model_inputs.rows import ModelInputs, ModelRows
from ..parsing import wrap_user_errors
from ..runs.run import Run
from ..runs.run_folder import RunFolder, Shard
from ..settings import MAX_SEEDS, Settings, check_settings, find_name_problem, to_card_values
from .factory import get_model_name, make_factory
from .loop import Evaluation, SequentialTrainer
from .predictor import BATCH, TIME_LIMIT, Predictor


def evaluate(
    model: Any,
    on: str | Benchmark,
    *,
    seeds: int | Sequence[int] | None = None,
    out: Path | str | None = None,
    budget: str = "full",
    steps: int | None = None,
    device: str = "cpu",
    name: str | None = None,
    batch_size: int = BATCH,
    selection: str | None = None,
    settings: Settings | None = None,
    time_limit: float | None = None,
    code: str | None = None,
    limit: int | None = None,
    deterministic: bool = False,
    on_hang: Callable[[], None] | None = None,
    model_inputs: ModelInputs | None = None,
) -> Run:
    """Evaluate a model on a benchmark and write a run folder.

    model: an object with `predict` (and optionally `fit`), a scikit-learn estimator, a torch module, a function from a
      batch to predictions, or a factory: a class or function that is called once per seed with those of the arguments
      `seed`, `task`, `device` and `prompt` that it has. The contract of `predict` and `fit`: benchmarks/model.py,
      docs/evaluate.md.
    on: the benchmark's name. seeds: a number of seeds (0, 1, 2 ..) or a list; the protocol's number by default.
    out: the run folder (a new temporary one by default). An unfinished run in it is resumed.
    budget: "full", or "quick" for the protocol's short form. steps: passed to `fit` unchanged.
    name: the model's name on the run card.
    batch_size: rows passed to `predict` at a time.
    selection: the selection rule, one that the protocol permits; its first by default.
    settings: named values for the factory (or for an estimator's parameters); each is trained and yields candidates.
    time_limit: seconds for one batch, 0 for none; 600 by default, none for models with their own timeout (endpoints,
      commands). on_hang: called if native code does not return. model_inputs: by default those of the benchmark.
    limit: predict only this many rows of each part, drawn by their ids. The run is scored, but boards reject it.
    deterministic: the predictions do not depend on the seed, so one seed is enough; a model can declare it by an
      attribute `deterministic = True`. Checked first: a model with another seed must give the same for some rows.
    code: a digest of the model's code; computed from its source by default. An unfinished run is resumed only with the
      same digest.

    Under `torchrun` all processes call this with the same arguments; each predicts its share of the rows, and the run
    is identical to that of a single process.

    Raises `ModelError` with part, batch and row ids if a prediction is invalid; earlier predictions are stored.

    >>> import farshift as fs
    >>> def add(batch):
    ...     return (batch["a"] + batch["b"]) % 97
    >>> run = fs.evaluate(add, on="modadd97/xi35", seeds=1, budget="quick")
    >>> run.model, run.seeds
    ('add', (0,))
    >>> fs.score(run).ood.value
    1.0
    """
    benchmark = find_benchmark(on) if isinstance(on, str) else on
    if budget not in ("full", "quick"):
        raise FarshiftError(f"budget {budget!r}: use full or quick")
    batch_size = _to_positive_integer("batch_size", batch_size)
    steps = None if steps is None else _to_positive_integer("steps", steps)
    check_device(device)
    with wrap_user_errors(f"reading the model, a {type(model).__name__},"):
        deterministic = deterministic or getattr(model, "deterministic", None) is True
    chosen = list_seeds(1 if deterministic and seeds is None else seeds, benchmark, budget)
    if deterministic and chosen != [0]:
        raise FarshiftError(
            f"seeds {shorten_list([*map(str, chosen)])}: a deterministic model has one, 0: leave out --seeds"
        )
    spend = Budget(budget, steps, device)
    named = check_settings(settings)
    together = get_world()
    model_inputs = model_inputs or load_model_inputs(benchmark)
    with wrap_user_errors(f"reading the model, a {type(model).__name__},"):
        make = make_factory(model, benchmark.task, device, model_inputs.prompt)
        card: dict[str, Any] = {
            "name": get_model_name(model) if name is None else name,
            "kind": "own",
            "code": code
            or (own if isinstance(own := getattr(model, "code", None), str) else "")
            or compute_fingerprint(model),
            "batch_size": batch_size,
        }
        weights = getattr(model, "pretrained", None)  # what an adapter's factory declares; a user's may be anything
        if (
            isinstance(weights, list)
            and weights
            and all(isinstance(item, dict) and set(item) == {"name", "digest"} for item in weights)
        ):
            card["pretrained"] = weights
    if deterministic:
        card["deterministic"] = True
    if limit is not None:
        card["limit"] = _check_limit(limit, benchmark, selection)
    if settings:
        card["settings"] = {key: to_card_values(values) for key, values in named.items()}
    elif getattr(model, "one_candidate", False):  # the run's rule has nothing to choose from
        judged_by = benchmark.rule(selection).part
        if left_out := [part for part in benchmark.selection_only_parts if part != judged_by]:
            card["left_out"] = left_out
            log_message(f"{benchmark.name}: not predicted, as the selection rule needs none: {', '.join(left_out)}")
    if time_limit is None:
        time_limit = 0.0 if getattr(model, "keeps_time", False) else TIME_LIMIT
    query = Predictor(benchmark, batch_size, time_limit, on_hang, together)
    with begin_run(benchmark, out, card, spend, chosen, selection, together) as folder:
        evaluation = Evaluation(folder, benchmark, model_inputs, partial(SequentialTrainer, make), spend, query, named)
        for seed in folder.missing():
            for error in evaluation.run([seed]).values():
                raise error
        return folder.finish(together)


def _check_limit(limit: int, benchmark: Benchmark, selection: str | None) -> int:
    """Check a limit, and log what it means."""
    rule = benchmark.rule(selection)
    if rule.folds is not None:
        raise FarshiftError(f"limit: {rule.name} predicts additional rows: choose another selection, or no limit")
    limit = _to_positive_integer("limit", limit)
    log_message(
        f"{benchmark.name}: predicting {format_count(limit, 'row')} of each part, the same each time: a trial that "
        "boards reject"
    )
    return limit


def _to_positive_integer(name: str, value: Any) -> int:
    """Check a positive integer, which may be one of NumPy's."""
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if not 0 < number < 2**31:
        raise FarshiftError(f"{name} must be a whole number, at least 1, not {value!r}")
    return number


def list_seeds(seeds: int | Sequence[int] | None, benchmark: Benchmark, budget: str) -> list[int]:
    """Return the seeds to run, sorted."""
    if seeds is None:
        seeds = benchmark.seeds(budget)
    try:
        each = seeds if isinstance(seeds, Iterable) else range(min(operator.index(seeds), MAX_SEEDS + 1))
        numbers = sorted({operator.index(seed) for seed in each})
    except TypeError:
        numbers = []
    if not 0 < len(numbers) <= MAX_SEEDS or numbers[0] < 0 or numbers[-1] >= 2**31:
        raise FarshiftError(f"seeds: give 1 to {MAX_SEEDS}, each from 0 to 2147483647")
    return numbers


def begin_run(
    benchmark: Benchmark,
    out: Path | str | None,
    model: dict[str, Any],
    budget: Budget,
    seeds: list[int],
    selection: str | None = None,
    together: World = SINGLE_PROCESS,
) -> AbstractContextManager[RunFolder]:
    """Open the run folder of a plan, new or resumed; its lock is held within the context."""
    problem = find_name_problem(model["name"])
    if problem:
        raise FarshiftError(problem)
    if out is None and together.size > 1:
        raise FarshiftError("under torchrun give a run folder (out=..) that all processes share")
    path = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="farshift-run-"))
    spend: dict[str, Any] = {"name": budget.name, "device": budget.device}
    if budget.steps is not None:
        spend["steps"] = budget.steps
    rule = benchmark.rule(selection)
    plan = {
        "benchmark": {
            "name": benchmark.name,
            "split": benchmark.definition.split,
            "manifest_identity": benchmark.manifest.identity,
            "entry_identity": benchmark.identity(budget.name, budget.steps, rule.name),
            "selection": rule.name,
            "protocol_seeds": benchmark.seeds(budget.name),
        },
        "model": model,
        "budget": spend,
        "seeds": seeds,
        "farshift": get_version(),
    }
    return RunFolder.begin(path, plan, together)


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
