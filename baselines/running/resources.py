"""What a run takes before it starts: rows, downloads, disk, memory and time (`farshift run --dry-run`). A run that is
known not to fit is refused.

Sizes come from definitions and rows, speeds from a trial of a few steps and predictions on this machine; the rest is
multiplication."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

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
from ...loaders.acquire.source import compute_download_size
from ...loaders.cache.entries import format_size
from ...splits.schema import Field
from ..compatibility import list_required_data
from ..recipe import resolve_settings
from .plan import Plan, split_seeds

Sizes = dict[str, int]
"""By what takes them, bytes of one resource."""

_DEVICE_ADVICE = "lower the setting side or buckets or the network's size, or leave feed at auto"
ADVICE = {
    "disk": "free some space there, or set FARSHIFT_CACHE to a folder on another disk",
    "memory": _DEVICE_ADVICE,
    "device memory": _DEVICE_ADVICE,
}
"""By resource, what to change if there is too little of it."""

ROWS, FILES, PREDICTION_ROWS, STEPS = 8192, 256, 64, 5
"""Of a trial, the most rows that it trains on, the same for rows whose files have to be decoded, the rows that it
predicts, and its steps, of which the first is not timed."""


def find_shortages(needs: Mapping[str, Sizes], title: str, device: str = "cpu") -> list[str]:
    """For each resource with too little free: what takes the most of it, and what to change."""
    problems = []
    for resource, sizes in needs.items():
        total, free = sum(sizes.values()), get_free_bytes(resource, device)
        if total > free:
            most = max(sizes, key=sizes.__getitem__)
            where = f"{resource} of {device}" if resource == "device memory" else resource
            problems.append(
                f"{title} does not fit: it takes {format_size(total)} of {where} ({most}: "
                f"{format_size(sizes[most])}), and {format_size(free)} are free: {ADVICE[resource]}"
            )
    return problems


def get_free_bytes(resource: str, device: str = "cpu") -> int:
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
        refuse_shortages({"disk": list_downloads(benchmark)}, benchmark.name)
    load_model_inputs(benchmark)


def refuse_shortages(needs: Mapping[str, Sizes], title: str, device: str = "cpu") -> None:
    """`FarshiftError` in one line if there is too little of some resource."""
    for problem in find_shortages(needs, title, device):
        raise FarshiftError(problem)


def list_downloads(benchmark: Benchmark) -> Sizes:
    """What has to be downloaded before a benchmark can be run, as far as its source states sizes."""
    if load_cached(benchmark) is not None:
        return {}
    size = compute_download_size(benchmark.manifest.definition.source.name)
    return {"the download": size.bytes} if size.bytes else {}


def list_memory(plan: Plan, processes: int = 1) -> dict[str, Sizes]:
    """The memory that the training rows of a plan take as numbers, as far as settings and schema say; images that would
    be streamed take none. processes: how many train at once, each with its own rows."""
    model_inputs, recipe, task = load_cached(plan.benchmark), plan.recipe, plan.benchmark.task
    if model_inputs is None or recipe.estimator or recipe.encoder or task.type != "classification":
        return {}
    fields = [model_inputs.schema[name] for name in task.inputs]
    settings = [resolve_settings(recipe, plan.benchmark.name, values) for values in plan.settings.values()]
    width = max(sum(_count_numbers(item, values, len(fields) == 1) for item in fields) for values in settings)
    rows = sum(model_inputs.count_rows(name) for name in ("train", "id_val") if model_inputs.has_part(name))
    what = f"the rows as {width:,} numbers each"
    return {plan.memory: {what: 4 * width * rows * processes}} if width else {}


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


def estimate_cost(plan: Plan, engine: str = "local") -> dict[str, Any]:
    """Estimate the cost of a plan under an engine, as plain JSON; sizes are in bytes, times in seconds of wall clock.
    Downloads nothing if the network is forbidden: what is not in the cache is then not measured. Raises the training's
    errors for a recipe that does not fit its benchmark.

    done: seeds that the run folder has already. steps: of one training; None for an estimator. rows: of each part, and
    of all predicted parts together. replicas: trainings, one for each seed and setting, and again for each fold of a
    selection rule. problems: what does not fit, each with what to change. measured: of a trial; None with the reason
    (`not_measured`). seconds: of reading, training and predicting, and their sum (`all`)."""
    benchmark, device = plan.benchmark, plan.budget.device
    needs: dict[str, Sizes] = {"disk": list_downloads(benchmark), "memory": {}, plan.memory: {}}
    problems = find_shortages(needs, benchmark.name, device)
    try:
        model_inputs = None if problems else load_cached(benchmark) or load_model_inputs(benchmark)
    except Unavailable:
        model_inputs = None
    with open_engine(engine, Needs(device, threads=1)) as executor:
        seeds = split_seeds(plan.seeds, executor.workers)
    estimate: dict[str, Any] = {
        "baseline": plan.name,
        "benchmark": benchmark.name,
        "budget": plan.budget.name,
        "device": device,
        "seeds": plan.seeds,
        "done": _count_done(plan),
        "settings": len(plan.settings),
        "steps": None if plan.recipe.estimator else plan.steps,
        "rows": _count_rows(benchmark, model_inputs),
        "download": asdict(compute_download_size(benchmark.manifest.definition.source.name)),
        "needs": needs,
        "free": {resource: get_free_bytes(resource, device) for resource in needs},
        "processes": len(seeds),
        "problems": problems,
        "replicas": len(plan.seeds) * len(plan.settings),
        "measured": None,
        "not_measured": "it does not fit",
        "seconds": {},
    }
    if model_inputs is None:
        if not problems:
            pull = f"farshift splits pull {benchmark.manifest.name}"
            estimate["not_measured"] = f"the data are not in the cache: run {pull}"
        return estimate
    plan.check()
    estimate["replicas"] *= plan.number_of_fits()
    needs[plan.memory] |= list_memory(plan, len(seeds)).get(plan.memory, {})
    problems += find_shortages(needs, plan.title, device)
    if plan.recipe.estimator:
        estimate["not_measured"] = "an estimator stops by its own rule"
    elif not problems:
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


def _measure(plan: Plan, seeds: Sequence[int], model_inputs: ModelInputs, estimate: dict[str, Any]) -> None:
    """Time a few steps of the replicas of one process on rows spread over the training part, and add what they cost. Of
    the rows only features of a frozen encoder are stored, which the run then uses. The networks are untrained, so texts
    that they generate have the maximum length."""
    import numpy as np

    from ...loaders.batching.encoded import is_encoded
    from ...loaders.batching.images import decode_images
    from ..encoding.log_mel import is_audio_task
    from ..replicas.stacked import count_parameters
    from ..training.replica_group import ReplicaGroup
    from ..training.stack_size import time_steps
    from ..training.trained_group import predict_batch
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
    given = FitInput(some, sample(rows.val()), sample(opened.get("ood_val")), unlabelled)
    _, encode = next(group.encode(given, plan.budget))
    encoded = encode()
    reading = (time.perf_counter() - start) / len(some)
    training = group.make_training(encoded, encoded.members[: group.count_stacked(encoded)])
    seconds = time_steps(training, min(STEPS, training.steps))
    step, drawn = float(np.median(seconds[1:] or seconds)), training.sampler.drawn
    if not training.stack.hyperparameters["batch_size"]:  # a full batch grows with the rows
        step, drawn = step * len(train) / len(some), len(train)
    batch = model_inputs.part(benchmark.predicted_parts[0]).batch(slice(0, PREDICTION_ROWS))
    batch |= decode(batch)
    training.stack.network.eval()
    start = time.perf_counter()
    predict_batch(encoded.coding, training.stack, encoded.read(batch))
    answer = (time.perf_counter() - start) / len(next(iter(batch.values())))

    stacked, parameters = len(training.stack), count_parameters(training.stack.network)
    estimate["measured"] = {"replicas": stacked, "drawn": drawn, "parameters": parameters}
    estimate["measured"] |= {"reading_seconds": reading, "step_seconds": step, "answer_seconds": answer}
    predicted = estimate["rows"]["predicted"]
    every = predicted + sum(estimate["rows"].get(name, 0) for name in ("train", "id_val"))
    stacks = max(1.0, estimate["replicas"] / estimate["processes"] / stacked)
    parts = [reading * every, stacks * training.steps * step, stacks * predicted * answer]
    estimate["seconds"] = dict(zip(("reading", "training", "predicting", "all"), (*parts, sum(parts)), strict=True))
    estimate["needs"][plan.memory]["the networks"] = 4 * parameters * estimate["replicas"]
    if decoded:
        estimate["needs"]["disk"]["decoded images"] = 3 * values["side"] ** 2 * every


def format_estimate(estimate: Mapping[str, Any]) -> list[list[str]]:
    """An estimate as rows of two cells: a resource, and what it takes."""
    training = f"{format_count(estimate['replicas'], 'replica')} ({format_count(len(estimate['seeds']), 'seed')}"
    training += f", {format_count(estimate['settings'], 'setting')}; {estimate['done']} of the seeds done)"
    training += f", {format_count(estimate['steps'], 'step')}" if estimate["steps"] is not None else ""
    if trial := estimate["measured"]:
        training += " of {drawn:,} rows each, {replicas} at once; {parameters:,} parameters".format_map(trial)
    training += f"; in {estimate['processes']} processes" * (estimate["processes"] > 1)
    counts = ", ".join(f"{count:,} {name}" for name, count in estimate["rows"].items() if count)
    size = estimate["download"]
    download = [format_size(size["bytes"])] * bool(size["bytes"])
    download += [f"{name} (its size is not stated)" for name in size["unknown"]]
    table = [
        ["training", training],
        ["rows", counts or "not known: the split is frozen when it is first pulled"],
        ["download", ", ".join(download) or "nothing"],
    ]
    for resource, free in estimate["free"].items():
        needs = [f"{what} {format_size(count)}" for what, count in estimate["needs"][resource].items()]
        needs = needs or ["little" if trial else "not known"]
        table.append([resource, f"{', '.join(needs)}; {format_size(free)} are free"])
    if trial:
        step, answer = trial["step_seconds"], 1000 * trial["answer_seconds"]
        table.append(["measured", f"{step:.3g} s a step, {answer:.3g} ms a row to predict"])
    return [*table, ["time", format_time(estimate)]]


def format_time(estimate: Mapping[str, Any]) -> str:
    """The time of an estimate in words."""
    seconds = estimate["seconds"]
    if not seconds:
        return f"not known: {estimate['not_measured']}"
    parts = ", ".join(f"{name} {format_duration(value)}" for name, value in seconds.items() if name != "all")
    return f"{'about ' if seconds['all'] >= 0.5 else ''}{format_duration(seconds['all'])} ({parts}): an estimate"
