"""What a run takes before it starts: rows, downloads, disk, memory and time (`farshift run --dry-run`). A run that is
known not to fit is refused.

Sizes come from definitions and rows, speeds from a trial of a few steps and predictions on this machine; the rest is
multiplication."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Literal

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.harness.loop import TrainingSet
from ...benchmarks.model_inputs.load import StreamedBenchmark, load_cached, load_model_inputs
from ...benchmarks.model_inputs.rows import ModelInputs, ModelRows
from ...benchmarks.runs.status import read_status
from ...core.clock import format_duration
from ...core.engines import Needs, limit_threads, open_engine, use_free_cores
from ...core.errors import FarshiftError, Unavailable
from ...core.files import get_cache_root
from ...core.text import format_count
from ...loaders.acquire.source import DownloadSize, compute_download_size
from ...loaders.cache.entries import format_size
from ...splits.schema import Field
from ..compatibility import list_required_data
from ..recipe import resolve_settings
from .plan import Plan, split_seeds

Resource = Literal["disk", "memory", "device memory"]

ROWS, FILES, PREDICTION_ROWS = 8192, 256, 64
"""The most rows that a trial trains on, the same for rows whose files have to be decoded, and rows that it predicts."""

_STEPS = 5
"""The steps of a trial; the first is not timed."""


@dataclass(frozen=True)
class Requirement:
    """A need for disk space or memory. change: what to change if there is too little; it follows a colon."""

    what: str
    resource: Resource
    bytes: int
    change: str


def check_requirements(needs: Sequence[Requirement], title: str, device: str = "cpu") -> None:
    """`FarshiftError` in one line if the needs of some resource exceed what is free."""
    for problem in find_shortages(needs, title, device):
        raise FarshiftError(problem)


def find_shortages(needs: Sequence[Requirement], title: str, device: str = "cpu") -> list[str]:
    """For each resource with too little free: what takes the most of it, and what to change."""
    problems = []
    for resource in dict.fromkeys(need.resource for need in needs):
        some = [need for need in needs if need.resource == resource]
        total, free = sum(need.bytes for need in some), get_free_bytes(resource, device)
        if total > free:
            most = max(some, key=lambda need: need.bytes)
            where = f"{resource} of {device}" if resource == "device memory" else resource
            problems.append(
                f"{title} does not fit: it takes {format_size(total)} of {where} ({most.what}: "
                f"{format_size(most.bytes)}), and {format_size(free)} are free: {most.change}"
            )
    return problems


def get_free_bytes(resource: Resource, device: str = "cpu") -> int:
    """The free bytes of a resource: of the disk that the cache is (or would be) on, memory, or the memory of a
    device."""
    if resource == "disk":
        folder: Path = get_cache_root()
        while not folder.exists():
            folder = folder.parent
        return shutil.disk_usage(folder).free
    from ..training.feed import get_free_memory

    return get_free_memory(device if resource == "device memory" else "cpu")


def prepare_data(benchmark: Benchmark) -> None:
    """Bring a benchmark's data into the cache, once here instead of in every worker. `FarshiftError` before any
    download if the disk has too little space."""
    if not isinstance(benchmark, StreamedBenchmark):
        check_requirements(list_disk_requirements(benchmark), benchmark.name)
    load_model_inputs(benchmark)


def list_disk_requirements(benchmark: Benchmark) -> list[Requirement]:
    """What has to be downloaded before a benchmark can be run, as far as its source states sizes."""
    if load_cached(benchmark) is not None:
        return []
    size = compute_download_size(benchmark.manifest.definition.source.name)
    change = "free some space there, or set FARSHIFT_CACHE to a folder on another disk"
    return [Requirement("the download", "disk", size.bytes, change)] if size.bytes else []


def list_memory_requirements(plan: Plan, processes: int = 1) -> list[Requirement]:
    """The memory that the training rows of a plan take as numbers, as far as settings and schema say; images that would
    be streamed take none. processes: how many train at once, each with its own rows."""
    model_inputs, recipe, task = load_cached(plan.benchmark), plan.recipe, plan.benchmark.task
    if model_inputs is None or recipe.estimator or recipe.encoder or task.type != "classification":
        return []
    fields = [model_inputs.schema[name] for name in task.inputs]
    settings = [resolve_settings(recipe, plan.benchmark.name, values) for values in plan.settings.values()]
    width = max(sum(_count_numbers(item, values, len(fields) == 1) for item in fields) for values in settings)
    rows = sum(model_inputs.count_rows(name) for name in ("train", "id_val") if model_inputs.has_part(name))
    resource: Resource = "memory" if plan.budget.device == "cpu" else "device memory"
    advice = "lower the setting side or buckets, or leave feed at auto"
    need = Requirement(f"the rows as {width:,} numbers each", resource, 4 * width * rows * processes, advice)
    return [need] if width else []


def _count_numbers(item: Field, values: Mapping[str, Any], alone: bool) -> int:
    """The numbers that a network reads of a field of one row. alone: it is the only input."""
    image = item.item == "bytes" or (item.item == "uint8" and len(item.shape) in (2, 3))
    if image and alone and values["feed"] != "resident":
        return 0
    if item.item == "bytes":
        return int(3 * values["side"] ** 2)
    if item.item == "string":
        return 0 if values["inputs"] == "tokens" else int(values["buckets"])
    return prod(item.shape)


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
    measured: dict[str, Any] | None = None
    """Of a trial: `replicas` stacked, rows `drawn` in each step, `parameters`; and the seconds to read a row, to make a
    step, and to predict a row: `reading_seconds`, `step_seconds`, `answer_seconds`."""
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
            training += " of {drawn:,} rows each, {replicas} at once; {parameters:,} parameters".format_map(trial)
        training += f"; in {self.processes} processes" * (self.processes > 1)
        counts = ", ".join(f"{count:,} {name}" for name, count in self.rows.items() if count)
        download = [format_size(self.download.bytes)] * bool(self.download.bytes)
        download += [f"{name} (its size is not stated)" for name in self.download.unknown]
        table = [
            ["training", training],
            ["rows", counts or "not known: the split is frozen when it is first pulled"],
            ["download", ", ".join(download) or "nothing"],
        ]
        for resource, free in self.free.items():
            needs = [f"{need.what} {format_size(need.bytes)}" for need in self.needs if need.resource == resource]
            needs = needs or ["little" if self.seconds else "not known"]
            table.append([resource, f"{', '.join(needs)}; {format_size(free)} are free"])
        if trial:
            step, answer = trial["step_seconds"], 1000 * trial["answer_seconds"]
            table.append(["measured", f"{step:.3g} s a step, {answer:.3g} ms a row to predict"])
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
        rows=_count_rows(benchmark, model_inputs),
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
        _measure(plan, seeds[0], model_inputs, estimate)
    problems += find_shortages(needs, plan.title, device)
    return estimate


def _count_done(plan: Plan) -> int:
    """The seeds that a run of the same model and benchmark has finished in the plan's folder."""
    if not any((plan.out / name).is_file() for name in ("run.toml", "plan.json")):
        return 0
    status = read_status(plan.out)
    return status.seeds if (status.benchmark, status.model) == (plan.benchmark.name, plan.name) else 0


def _count_rows(benchmark: Benchmark, model_inputs: ModelInputs | None) -> dict[str, int]:
    """Count rows by part: in the cache, else in the manifest or the published counts."""
    definition = benchmark.manifest.definition
    rows = {name: pin.rows for name, pin in definition.parts.items()}
    if model_inputs is not None:
        rows = {name: model_inputs.count_rows(name) for name in model_inputs.parts}
    elif not rows and definition.published:
        rows = dict(definition.published.rows)
    return rows | {"predicted": sum(rows.get(name, 0) for name in benchmark.predicted_parts)}


def _measure(plan: Plan, seeds: Sequence[int], model_inputs: ModelInputs, estimate: Estimate) -> None:
    """Time a few steps of the replicas of one process on rows spread over the training part, and add what they cost. Of
    the rows only features of a frozen encoder are stored, which the run then uses. The networks are untrained, so texts
    that they generate have the maximum length."""
    import numpy as np
    import torch

    from ...loaders.batching.images import decode_images
    from ..encoding.images import is_encoded
    from ..encoding.log_mel import is_audio_task
    from ..replicas.stacked import count_parameters
    from ..training.predict import predict_batch
    from ..training.replica_group import ReplicaGroup
    from ..training.trained_group import TrainedGroup
    from ..training.training_rows import FitInput, Member

    recipe, benchmark, task = plan.recipe, plan.benchmark, plan.benchmark.task
    members = [Member(seed, values) for seed in seeds for values in plan.settings.values()]
    values = resolve_settings(recipe, benchmark.name, members[0].settings)
    rows = TrainingSet(benchmark, model_inputs)
    train = rows.train()
    files = [name for name in task.inputs if is_encoded(train.columns[name])]
    decoded = [] if recipe.encoder or is_audio_task(task, train.columns) else files

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
    group = ReplicaGroup(recipe, task, members, benchmark.name, stack=plan.stack)
    trained = TrainedGroup(recipe, task, benchmark.name, members)
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
    estimate.measured = {"replicas": stacked, "drawn": drawn, "parameters": parameters}
    estimate.measured |= {"reading_seconds": reading, "step_seconds": step, "answer_seconds": answer}
    predicted = estimate.rows["predicted"]
    every = predicted + sum(estimate.rows.get(name, 0) for name in ("train", "id_val"))
    stacks = max(1.0, estimate.replicas / estimate.processes / stacked)
    parts = [reading * every, stacks * training.steps * step, stacks * predicted * answer]
    estimate.seconds = dict(zip(("reading", "training", "predicting", "all"), (*parts, sum(parts)), strict=True))
    memory: Resource = "memory" if plan.budget.device == "cpu" else "device memory"
    size = 4 * parameters * estimate.replicas
    estimate.needs.append(Requirement("the networks", memory, size, "lower the network's size"))
    if decoded:
        size = 3 * values["side"] ** 2 * every
        estimate.needs.append(Requirement("decoded images", "disk", size, "set FARSHIFT_CACHE to another disk"))
