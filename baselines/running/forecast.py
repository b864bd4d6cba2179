"""What a run takes before it starts: steps, rows, disk, memory and time. Sizes are known from definitions and rows
(`needs.py`), speeds are measured in a short trial (`probe.py`), and the rest is multiplication: an estimate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.blind.data import blind_data, prepared
from ...benchmarks.blind.rows import BlindData
from ...core.engines import Needs, opened
from ...core.errors import FarshiftError, Unavailable
from ...loaders.acquire.download_size import DownloadSize, download_size
from ..training.training_rows import Member
from .needs import Need, Place, by_side, disk_needs, free_disk, is_streamed, lacking, memory_needs, room
from .plan import Plan
from .probe import Probe, probe
from .sweep import seed_groups


@dataclass(frozen=True)
class Forecast:
    """What one plan takes. Sizes are bytes, times seconds of wall clock; None is what could not be told."""

    plan: Plan
    workers: int
    folds: int
    steps: int | None
    """Of one replica; None for an estimator, which trains to its own end."""
    rows: dict[str, int]
    """Of each part, and in all those that are predicted (`predicted`)."""
    download: DownloadSize
    needs: list[Need]
    free: dict[str, int]
    probes: list[Probe]
    """One for each size at which pictures are read; none where nothing was measured."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of `decoding`, `encoding`, `training`, `predicting`, and their sum (`all`); empty where nothing was measured."""
    unmeasured: str = ""
    """Why nothing was."""
    problems: list[str] = field(default_factory=list)
    """What does not fit, each with what to change."""

    @property
    def replicas(self) -> int:
        """That are trained: each seed and setting, and again for each fold of a selection rule."""
        return len(self.plan.seeds) * len(self.plan.settings) * (1 + self.folds)

    @property
    def probe(self) -> Probe | None:
        """The first."""
        return self.probes[0] if self.probes else None

    def bytes(self, place: str) -> int:
        """What is needed of a place."""
        return sum(need.bytes for need in self.needs if need.place == place)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        plan = self.plan
        tried = [
            {name: value for name, value in asdict(probe).items() if name not in ("pictures", "share")}
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
            "needs": [{"what": need.what, "place": need.place, "bytes": need.bytes} for need in self.needs],
            "free": self.free,
            "measured": tried[0] if tried else None,
            "measured_at_other_sizes": tried[1:],
            "not_measured": self.unmeasured,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "fits": not self.problems,
            "problems": self.problems,
        }


def forecast(plan: Plan, engine: str = "local") -> Forecast:
    """What a plan takes under an engine. Downloads nothing where the network is forbidden: then what is not here is
    not measured. Raises what the training would raise of a recipe that does not fit its benchmark."""
    device = plan.budget.device
    download = download_size(plan.benchmark.manifest.definition.source.name)
    tried: list[Probe] = []
    needs, why, folds = disk_needs(plan.benchmark), "", 0
    problems = lacking(needs, plan.benchmark.name, device)
    blind = None if problems else _data(plan.benchmark)
    with opened(engine, Needs(device, threads=1)) as at_work:
        groups = seed_groups(plan.seeds, at_work.workers)
    if problems:
        why = "it does not fit"
    elif blind is None:
        why = f"the data are not here: farshift splits pull {plan.benchmark.manifest.name}"
    else:
        plan.check()
        folds = plan.trainings() - 1
        needs += memory_needs(plan, len(groups))
        problems = lacking(needs, plan.title, device)
        if problems:
            why = "it does not fit"
        else:
            for names in by_side(plan, blind, list(plan.settings)):
                feed = {"feed": "streamed"} if is_streamed(plan, blind, plan.settings[names[0]]) else {}
                members = [Member(seed, {**plan.settings[name], **feed}) for seed in groups[0] for name in names]
                with _threads(1 if len(groups) > 1 else 0):
                    tried.append(probe(plan, members))
                tried[-1].share = len(names) / len(plan.settings)
    rows = _rows(plan.benchmark, blind)
    found = Forecast(
        plan,
        workers=len(groups),
        folds=folds,
        steps=None if plan.recipe.estimator else plan.steps,
        rows=rows,
        download=download,
        needs=needs,
        free={"disk": free_disk(), "memory": room("memory")}
        | ({} if device == "cpu" else {"device memory": room("device memory", device)}),
        probes=tried,
        unmeasured=why,
        problems=problems,
    )
    for one in tried:
        _add_measured(found, one)
    if "training" in found.seconds:
        found.seconds["all"] = sum(found.seconds.values())
    if tried:
        kept = [need for need in found.needs if need.what != "decoded pictures"]
        found.problems.extend(lacking(kept, plan.title, device))
    return found


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Arithmetic on so many threads, as in a worker's process; 0: as it is."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _data(benchmark: Benchmark) -> BlindData | None:
    """The benchmark's rows, made where this machine can make them."""
    try:
        return prepared(benchmark) or blind_data(benchmark)
    except Unavailable:
        return None


def _rows(benchmark: Benchmark, blind: BlindData | None) -> dict[str, int]:
    """Rows by part; before the data are here, as the manifest counts them."""
    if blind is not None:
        parts = sorted({"train", *benchmark.predicted_parts, *(n for n in ("id_val", "ood_val") if blind.has_part(n))})
        rows = {name: blind.stored(name).num_rows for name in parts}
    else:
        rows = {name: pin.rows for name, pin in benchmark.manifest.definition.parts.items()}
        for holdout in benchmark.definition.holdouts:
            taken = round(holdout.share * rows[holdout.part])
            rows[holdout.part] -= taken
            rows[holdout.to] = rows.get(holdout.to, 0) + taken
    return rows | {"predicted": sum(rows.get(name, 0) for name in benchmark.predicted_parts)}


def _add_measured(found: Forecast, tried: Probe) -> None:
    """What follows from a trial: seconds, decoded pictures and features on the disk, memory of the steps. Of several,
    each adds its share."""
    plan, rows = found.plan, found.rows
    per_process = max(1, ceil(found.replicas * tried.share / found.workers))
    side_by_side = found.workers
    seconds = found.seconds
    if tried.pictures_per_second:
        left = sum(rows[name] for name, there in tried.pictures.items() if not there)
        seconds["decoding"] = seconds.get("decoding", 0) + (left + rows["predicted"]) / tried.pictures_per_second
        size = 3 * tried.side**2 * (left + rows["predicted"])
        found.needs.append(Need("decoded pictures", "disk", size, "set FARSHIFT_CACHE to another disk"))
    if tried.sounds_per_second:
        every = sum(rows[name] for name in ("train", "id_val") if name in rows) + rows["predicted"]
        seconds["decoding"] = every / tried.sounds_per_second
    if tried.width:
        every = sum(rows[name] for name in ("train", "id_val") if name in rows) + rows["predicted"]
        found.needs.append(
            Need("features", "disk", 4 * tried.width * every, "set FARSHIFT_CACHE to a folder on another disk")
        )
        if tried.features_per_second:
            seconds["encoding"] = every / tried.features_per_second
    if found.steps is not None and tried.replicas:
        stacks = per_process / tried.replicas
        seconds["training"] = seconds.get("training", 0) + stacks * found.steps * tried.step_seconds
        seconds["predicting"] = seconds.get("predicting", 0) + stacks * rows["predicted"] * tried.answer_seconds
        here: Place = "memory" if plan.budget.device == "cpu" else "device memory"
        change = "lower batch_size, --stack or the network's size"
        if not any(need.what.endswith("numbers each") for need in found.needs):
            every = sum(rows[name] for name in ("train", "id_val") if name in rows)
            size = int(tried.row_bytes * every) * side_by_side
            fewer = "train on fewer rows, or set feed = 'streamed'"
            _add_largest(found.needs, Need("the rows as tensors", here, size, fewer), "the rows as tensors")
        replicas = round(found.replicas * tried.share)
        found.needs.append(Need("the networks", here, 4 * tried.parameters * replicas, change))
        if tried.step_bytes is not None:
            what = f"a step of {tried.replicas} at once" if tried.replicas > 1 else "a step"
            _add_largest(found.needs, Need(what, here, tried.step_bytes * side_by_side, change), "a step")


def _add_largest(needs: list[Need], need: Need, start: str) -> None:
    """Add a need, of those that begin alike only the largest: what is trained one after the other needs it in turn."""
    before = [other for other in needs if other.what.startswith(start)]
    if all(other.bytes < need.bytes for other in before):
        needs[:] = [*(other for other in needs if other not in before), need]


def refuse_problems(found: Sequence[Forecast]) -> None:
    """`FarshiftError` with the first thing that does not fit, and how many more there are."""
    problems = [problem for one in found for problem in one.problems]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise FarshiftError(f"{problems[0]}{more}")
