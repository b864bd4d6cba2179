"""Estimate the cost of a run before it starts: steps, rows, disk, memory and time. Sizes come from definitions and rows
(`resources.py`), speeds are measured in a short trial (`probe.py`), and the rest is multiplication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.model_inputs.load import load_cached, load_model_inputs
from ...benchmarks.model_inputs.rows import ModelInputs
from ...core.engines import Needs, open_engine
from ...core.errors import FarshiftError, Unavailable
from ...core.threads import choose_threads, limit_threads, measure_busy_cores
from ...loaders.acquire.download_size import DownloadSize, compute_download_size
from ..training.training_rows import Member
from .plan import Plan
from .probe import Probe, run_probe
from .resources import (
    Requirement,
    Resource,
    find_shortages,
    get_free_bytes,
    get_free_disk,
    group_by_image_size,
    is_streamed,
    list_disk_requirements,
    list_memory_requirements,
)
from .sweep import split_seeds


@dataclass(frozen=True)
class Forecast:
    """The estimated cost of one plan. Sizes are in bytes, times in seconds of wall clock; None if unknown."""

    plan: Plan
    workers: int
    folds: int
    steps: int | None
    """Steps of one replica; None for an estimator, which stops by its own rule."""
    rows: dict[str, int]
    """Rows of each part, and of all predicted parts together (`predicted`)."""
    download: DownloadSize
    needs: list[Requirement]
    free: dict[str, int]
    probes: list[Probe]
    """One for each size at which images are read; empty if nothing was measured."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of `decoding`, `encoding`, `training`, `predicting`, and their sum (`all`); empty if nothing was measured."""
    unmeasured: str = ""
    """Why nothing was measured."""
    busy_cores: float = 0.0
    """Cores in use by others when the trial began."""
    problems: list[str] = field(default_factory=list)
    """What does not fit, each with what to change."""

    @property
    def replicas(self) -> int:
        """The number of replicas: one for each seed and setting, and again for each fold of a selection rule."""
        return len(self.plan.seeds) * len(self.plan.settings) * (1 + self.folds)

    @property
    def probe(self) -> Probe | None:
        """The first probe, if any."""
        return self.probes[0] if self.probes else None

    def bytes(self, resource: str) -> int:
        """The bytes needed of a resource."""
        return sum(need.bytes for need in self.needs if need.resource == resource)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plan = self.plan
        trials = [
            {name: value for name, value in asdict(probe).items() if name not in ("images", "share")}
            for probe in self.probes
        ]
        return {
            "baseline": plan.name,
            "benchmark": plan.benchmark.name,
            "budget": plan.budget.name,
            "device": plan.budget.device,
            "seeds": plan.seeds,
            "settings": len(plan.settings),
            "folds": self.folds,
            "replicas": self.replicas,
            "processes": self.workers,
            "steps": self.steps,
            "rows": self.rows,
            "download": {
                "bytes": self.download.bytes,
                "not_stated": list(self.download.unknown),
                "own": self.download.own,
            },
            "needs": [{"what": need.what, "place": need.resource, "bytes": need.bytes} for need in self.needs],
            "free": self.free,
            "measured": trials[0] if trials else None,
            "measured_at_other_sizes": trials[1:],
            "not_measured": self.unmeasured,
            "busy_cores": round(self.busy_cores, 1),
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "fits": not self.problems,
            "problems": self.problems,
        }


def estimate_cost(plan: Plan, engine: str = "local") -> Forecast:
    """Estimate the cost of a plan under an engine. Downloads nothing if the network is forbidden: what is not in the
    cache is then not measured. Raises the training's errors for a recipe that does not fit its benchmark."""
    device = plan.budget.device
    download = compute_download_size(plan.benchmark.manifest.definition.source.name)
    trials: list[Probe] = []
    needs, why, folds, busy = list_disk_requirements(plan.benchmark), "", 0, 0.0
    problems = find_shortages(needs, plan.benchmark.name, device)
    model_inputs = None if problems else _load_rows(plan.benchmark)
    with open_engine(engine, Needs(device, threads=1)) as executor:
        groups = split_seeds(plan.seeds, executor.workers)
    if problems:
        why = "it does not fit"
    elif model_inputs is None:
        why = f"the data are not in the cache: run farshift splits pull {plan.benchmark.manifest.name}"
    else:
        plan.check()
        folds = plan.number_of_fits() - 1
        needs += list_memory_requirements(plan, len(groups))
        problems = find_shortages(needs, plan.title, device)
        if problems:
            why = "it does not fit"
        else:
            busy = measure_busy_cores() if device == "cpu" and len(groups) == 1 else 0.0
            for names in group_by_image_size(plan, model_inputs, list(plan.settings)):
                feed = {"feed": "streamed"} if is_streamed(plan, model_inputs, plan.settings[names[0]]) else {}
                members = [Member(seed, {**plan.settings[name], **feed}) for seed in groups[0] for name in names]
                with limit_threads(1 if len(groups) > 1 else choose_threads(busy)):
                    trials.append(run_probe(plan, members))
                trials[-1].share = len(names) / len(plan.settings)
    rows = _count_rows(plan.benchmark, model_inputs)
    result = Forecast(
        plan,
        workers=len(groups),
        folds=folds,
        steps=None if plan.recipe.estimator else plan.steps,
        rows=rows,
        download=download,
        needs=needs,
        free={"disk": get_free_disk(), "memory": get_free_bytes("memory")}
        | ({} if device == "cpu" else {"device memory": get_free_bytes("device memory", device)}),
        probes=trials,
        unmeasured=why,
        busy_cores=busy,
        problems=problems,
    )
    for trial in trials:
        _add_measured(result, trial)
    if "training" in result.seconds:
        result.seconds["all"] = sum(result.seconds.values())
    if trials:
        other_needs = [need for need in result.needs if need.what != "decoded images"]
        result.problems.extend(find_shortages(other_needs, plan.title, device))
    return result


def _load_rows(benchmark: Benchmark) -> ModelInputs | None:
    """The benchmark's rows, downloaded or generated if this machine can do so."""
    try:
        return load_cached(benchmark) or load_model_inputs(benchmark)
    except Unavailable:
        return None


def _count_rows(benchmark: Benchmark, model_inputs: ModelInputs | None) -> dict[str, int]:
    """Count rows by part: in the cache, else in the manifest or the published counts. Of a definition without either
    only `predicted` is given, 0."""
    if model_inputs is not None:
        rows = {name: model_inputs.count_rows(name) for name in model_inputs.parts}
    else:
        definition = benchmark.manifest.definition
        rows = {name: pin.rows for name, pin in definition.parts.items()}
        rows = rows or dict(definition.published.rows if definition.published else {})
        for holdout in (holdout for holdout in benchmark.definition.holdouts if holdout.part in rows):
            count = round(holdout.share * rows[holdout.part])
            rows[holdout.part] -= count
            rows[holdout.to] = rows.get(holdout.to, 0) + count
    return rows | {"predicted": sum(rows.get(name, 0) for name in benchmark.predicted_parts)}


def _add_measured(estimate: Forecast, trial: Probe) -> None:
    """Add what follows from a trial: seconds, decoded images and features on disk, memory of the steps. Several trials
    each add their share."""
    plan, rows = estimate.plan, estimate.rows
    per_process = max(1, ceil(estimate.replicas * trial.share / estimate.workers))
    side_by_side = estimate.workers
    seconds = estimate.seconds
    if trial.images_per_second:
        left = sum(rows[name] for name, there in trial.images.items() if not there)
        seconds["decoding"] = seconds.get("decoding", 0) + (left + rows["predicted"]) / trial.images_per_second
        size = 3 * trial.side**2 * (left + rows["predicted"])
        estimate.needs.append(Requirement("decoded images", "disk", size, "set FARSHIFT_CACHE to another disk"))
    if trial.audio_files_per_second:
        every = sum(rows[name] for name in ("train", "id_val") if name in rows) + rows["predicted"]
        seconds["decoding"] = every / trial.audio_files_per_second
    if trial.width:
        every = sum(rows[name] for name in ("train", "id_val") if name in rows) + rows["predicted"]
        estimate.needs.append(
            Requirement("features", "disk", 4 * trial.width * every, "set FARSHIFT_CACHE to a folder on another disk")
        )
        if trial.features_per_second:
            seconds["encoding"] = every / trial.features_per_second
    if estimate.steps is not None and trial.replicas:
        stacks = per_process / trial.replicas
        seconds["training"] = seconds.get("training", 0) + stacks * estimate.steps * trial.step_seconds
        seconds["predicting"] = seconds.get("predicting", 0) + stacks * rows["predicted"] * trial.answer_seconds
        resource: Resource = "memory" if plan.budget.device == "cpu" else "device memory"
        change = "lower batch_size, --stack or the network's size"
        if not any(need.what.endswith("numbers each") for need in estimate.needs):
            every = sum(rows[name] for name in ("train", "id_val") if name in rows)
            size = int(trial.row_bytes * every) * side_by_side
            fewer = "train on fewer rows, or set feed = 'streamed'"
            _add_largest(
                estimate.needs, Requirement("the rows as tensors", resource, size, fewer), "the rows as tensors"
            )
        replicas = round(estimate.replicas * trial.share)
        estimate.needs.append(Requirement("the networks", resource, 4 * trial.parameters * replicas, change))
        if trial.step_bytes is not None:
            what = f"a step of {trial.replicas} at once" if trial.replicas > 1 else "a step"
            _add_largest(estimate.needs, Requirement(what, resource, trial.step_bytes * side_by_side, change), "a step")


def _add_largest(needs: list[Requirement], need: Requirement, start: str) -> None:
    """Add a need. Of needs that begin alike only the largest is recorded: they are used one after the other."""
    before = [other for other in needs if other.what.startswith(start)]
    if all(other.bytes < need.bytes for other in before):
        needs[:] = [*(other for other in needs if other not in before), need]


def refuse_problems(estimates: Sequence[Forecast]) -> None:
    """`FarshiftError` with the first thing that does not fit, and the number of others."""
    problems = [problem for estimate in estimates for problem in estimate.problems]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise FarshiftError(f"{problems[0]}{more}")
