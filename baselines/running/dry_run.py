"""`farshift run --dry-run`: what a plan would train, what of it is done, and what it costs. Sizes come from definitions
and rows, speeds from a trial of a few steps and predictions on this machine; the rest is multiplication."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ...benchmarks.harness.training import TrainingSet
from ...benchmarks.model_inputs.load import load_cached, load_model_inputs
from ...benchmarks.model_inputs.rows import ModelInputs, ModelRows
from ...benchmarks.runs.status import read_status
from ...core.clock import format_duration
from ...core.engines import Needs, limit_threads, open_engine, use_free_cores
from ...core.errors import Unavailable
from ...core.text import format_count
from ...loaders.acquire.download_size import DownloadSize, compute_download_size
from ...loaders.batching.images import decode_images
from ...loaders.cache.entries import format_size
from ..compatibility import list_required_data
from ..encoding.images import is_encoded
from ..encoding.log_mel import is_audio_task
from ..recipe import resolve_settings
from ..replicas.stacked import count_parameters
from ..training.predict import predict_batch
from ..training.replica_group import ReplicaGroup
from ..training.trained_group import TrainedGroup
from ..training.training_rows import FitInput, Member
from .plan import Plan
from .resources import (
    Requirement,
    Resource,
    find_shortages,
    get_free_bytes,
    list_disk_requirements,
    list_memory_requirements,
)
from .sweep import split_seeds

ROWS, FILES, PREDICTION_ROWS = 8192, 256, 64
"""The most rows that a trial trains on, the same for rows whose files have to be decoded, and rows that it predicts."""

_STEPS = 5
"""The steps of a trial; the first is not timed."""


@dataclass
class Trial:
    """What a trial measured: of a stack of `replicas` of so many `parameters` each, in steps of `drawn` rows each."""

    replicas: int
    drawn: int
    parameters: int
    reading_seconds: float
    """To decode and encode one row."""
    step_seconds: float
    answer_seconds: float
    """To predict one row."""


@dataclass
class Estimate:
    """The estimated cost of one plan, as plain JSON. Sizes are in bytes, times in seconds of wall clock."""

    baseline: str
    benchmark: str
    budget: str
    device: str
    seeds: list[int]
    done: int
    """Seeds that the run folder has already."""
    settings: int
    steps: int | None
    """Steps of one training; None for an estimator, which stops by its own rule."""
    rows: dict[str, int]
    """Rows of each part, and of all predicted parts together (`predicted`); 0 if not known."""
    download: DownloadSize
    needs: list[Requirement]
    free: dict[str, int]
    processes: int
    problems: list[str]
    """What does not fit, each with what to change."""
    replicas: int
    """The number of trainings: one for each seed and setting, and again for each fold of a selection rule."""
    measured: Trial | None = None
    not_measured: str = ""
    """Why there is no time."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of `reading`, `training`, `predicting`, and their sum (`all`); empty if nothing was measured."""

    def table(self) -> list[list[str]]:
        """As rows of two cells: a resource, and its estimate."""
        training = f"{format_count(self.replicas, 'replica')} ({format_count(len(self.seeds), 'seed')}"
        training += f", {format_count(self.settings, 'setting')}; {self.done} of the seeds done)"
        training += f", {format_count(self.steps, 'step')}" if self.steps is not None else ""
        if trial := self.measured:
            training += f" of {trial.drawn:,} rows each, {trial.replicas} at once; {trial.parameters:,} parameters"
        training += f"; in {self.processes} processes" * (self.processes > 1)
        counts = ", ".join(f"{count:,} {name}" for name, count in self.rows.items() if count)
        download = [format_size(self.download.bytes)] * bool(self.download.bytes)
        download += [f"{name} (its size is not stated)" for name in self.download.unknown]
        own = f"; {format_size(self.download.own)} of local files are copied to the cache" * bool(self.download.own)
        table = [
            ["training", training],
            ["rows", counts or "not known: the split is frozen when it is first pulled"],
            ["download", (", ".join(download) or "nothing") + own],
        ]
        for resource, free in self.free.items():
            needs = [f"{need.what} {format_size(need.bytes)}" for need in self.needs if need.resource == resource]
            needs = needs or ["little" if self.seconds else "not known"]
            table.append([resource, f"{', '.join(needs)}; {format_size(free)} are free"])
        if trial:
            speed = f"{trial.step_seconds:.3g} s a step, {1000 * trial.answer_seconds:.3g} ms a row to predict"
            table.append(["measured", speed])
        return [*table, ["time", self.time]]

    @property
    def time(self) -> str:
        """The time in words."""
        if not self.seconds:
            return f"not known: {self.not_measured}"
        parts = [f"{name} {format_duration(value)}" for name, value in self.seconds.items() if name != "all"]
        total = format_duration(self.seconds["all"])
        return f"{total if self.seconds['all'] < 0.5 else 'about ' + total} ({', '.join(parts)}): an estimate"


def estimate_cost(plan: Plan, engine: str = "local") -> Estimate:
    """Estimate the cost of a plan under an engine. Downloads nothing if the network is forbidden: what is not in the
    cache is then not measured. Raises the training's errors for a recipe that does not fit its benchmark."""
    benchmark, device = plan.benchmark, plan.budget.device
    needs = list_disk_requirements(benchmark)
    problems = find_shortages(needs, benchmark.name)
    try:
        model_inputs = None if problems else load_cached(benchmark) or load_model_inputs(benchmark)
    except Unavailable:
        model_inputs = None
    with open_engine(engine, Needs(device, threads=1)) as executor:
        seeds = split_seeds(plan.seeds, executor.workers)
    estimate = Estimate(
        baseline=plan.name,
        benchmark=benchmark.name,
        budget=plan.budget.name,
        device=device,
        seeds=plan.seeds,
        done=_count_done(plan),
        settings=len(plan.settings),
        steps=None if plan.recipe.estimator else plan.steps,
        rows=_count_rows(plan, model_inputs),
        download=compute_download_size(benchmark.manifest.definition.source.name),
        needs=needs,
        free={"disk": get_free_bytes("disk"), "memory": get_free_bytes("memory")},
        processes=len(seeds),
        problems=problems,
        replicas=len(plan.seeds) * len(plan.settings),
    )
    if device != "cpu":
        estimate.free["device memory"] = get_free_bytes("device memory", device)
    if model_inputs is None:
        pull = f"the data are not in the cache: run farshift splits pull {benchmark.manifest.name}"
        estimate.not_measured = "it does not fit" if problems else pull
        return estimate
    plan.check()
    estimate.replicas *= plan.number_of_fits()
    needs += list_memory_requirements(plan, len(seeds))
    problems += find_shortages(needs, plan.title, device)
    if problems or plan.recipe.estimator:
        estimate.not_measured = "it does not fit" if problems else "an estimator stops by its own rule"
        return estimate
    with limit_threads(1) if len(seeds) > 1 or device != "cpu" else use_free_cores():
        _measure(plan, [Member(seed, values) for seed in seeds[0] for values in plan.settings.values()], estimate)
    problems += find_shortages(needs, plan.title, device)
    return estimate


def _count_done(plan: Plan) -> int:
    """The seeds that a run of the same model and benchmark has finished in the plan's folder."""
    if not any((plan.out / name).is_file() for name in ("run.toml", "plan.json")):
        return 0
    status = read_status(plan.out)
    return status.seeds if (status.benchmark, status.model) == (plan.benchmark.name, plan.name) else 0


def _count_rows(plan: Plan, model_inputs: ModelInputs | None) -> dict[str, int]:
    """Count rows by part: in the cache, else in the manifest or the published counts."""
    definition = plan.benchmark.manifest.definition
    if model_inputs is not None:
        rows = {name: model_inputs.count_rows(name) for name in model_inputs.parts}
    else:
        rows = {name: pin.rows for name, pin in definition.parts.items()}
        rows = rows or dict(definition.published.rows if definition.published else {})
    return rows | {"predicted": sum(rows.get(name, 0) for name in plan.benchmark.predicted_parts)}


def _measure(plan: Plan, members: Sequence[Member], estimate: Estimate) -> None:
    """Time a few steps of the members of one process on rows spread over the training part, and add what they cost. Of
    the rows only features of a frozen encoder are stored, which the run then uses. The networks are untrained, so texts
    that they generate have the maximum length."""
    recipe, benchmark, device = plan.recipe, plan.benchmark, plan.budget.device
    model_inputs = load_model_inputs(benchmark)
    rows = TrainingSet(benchmark, model_inputs)
    train = rows.train()
    files = [name for name in benchmark.task.inputs if is_encoded(train.columns[name])]
    decoded = [] if recipe.encoder or is_audio_task(benchmark.task, train.columns) else files
    values = resolve_settings(recipe, benchmark.name, members[0].settings)

    def decode(columns: Any) -> dict[str, Any]:
        return {name: decode_images(columns[name], values["side"], values["decoder"]) for name in decoded}

    def sample(part: ModelRows | None, count: int = PREDICTION_ROWS) -> Any:
        if part is None:
            return None
        some = part.select(np.unique(np.linspace(0, len(part) - 1, min(count, len(part))).astype(np.int64)))
        return some.replaced(decode(some.columns)) if decoded else some

    start = time.perf_counter()
    some = sample(train, FILES if files else ROWS)
    opened = rows.opened(list_required_data(recipe).__contains__)
    if (unlabelled := opened.get("unlabelled")) is not None:
        unlabelled = {name: column[: len(some)] for name, column in unlabelled.items()}
        unlabelled |= decode(unlabelled)
    group = ReplicaGroup(recipe, benchmark.task, members, benchmark.name, stack=plan.stack)
    trained = TrainedGroup(recipe, benchmark.task, benchmark.name, members)
    given = FitInput(some, sample(rows.val()), sample(opened.get("ood_val")), unlabelled)
    encoded = next(group.encode(trained, given, plan.budget), None)
    if encoded is None:
        trained.remarks(members[0])  # raises the error of its rows
        return
    reading = (time.perf_counter() - start) / len(some)
    training = group.make_training(encoded, encoded.members[: group.count_stacked(encoded)])
    seconds: list[float] = []
    for _ in range(min(_STEPS, training.steps)):
        start = time.perf_counter()
        training.step()
        if training.stack.keys.is_cuda:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    step, drawn = float(np.median(seconds[1:] or seconds)), training.sampler.drawn
    if not training.stack.hyperparameters["batch_size"]:  # a full batch grows with the rows
        step, drawn = step * len(train) / len(some), len(train)
    batch = model_inputs.part(benchmark.predicted_parts[0]).batch(slice(0, PREDICTION_ROWS))
    batch |= decode(batch)
    training.stack.network.eval()
    start = time.perf_counter()
    predict_batch(encoded.coding, training.stack, trained.read(batch))
    answer = (time.perf_counter() - start) / len(next(iter(batch.values())))
    stacked, parameters = len(training.stack), count_parameters(training.stack.network)
    estimate.measured = Trial(stacked, drawn, parameters, reading, step, answer)

    predicted = estimate.rows["predicted"]
    every = predicted + sum(estimate.rows.get(name, 0) for name in ("train", "id_val"))
    stacks = max(1.0, estimate.replicas / estimate.processes / stacked)
    estimate.seconds = {
        "reading": reading * every,
        "training": stacks * training.steps * step,
        "predicting": stacks * predicted * answer,
    }
    estimate.seconds["all"] = sum(estimate.seconds.values())
    memory: Resource = "memory" if device == "cpu" else "device memory"
    size = 4 * parameters * estimate.replicas
    estimate.needs.append(Requirement("the networks", memory, size, "lower the network's size"))
    if decoded:
        size = 3 * values["side"] ** 2 * every
        estimate.needs.append(Requirement("decoded images", "disk", size, "set FARSHIFT_CACHE to another disk"))
