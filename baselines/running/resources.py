"""The disk space and memory that a run is known to need before it starts, compared with what is free.

Files to download, and training rows as the numbers that a network reads; what needs a step to find out is measured by
`dry_run.py`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.model_inputs.load import StreamedBenchmark, load_cached, load_model_inputs
from ...core.errors import FarshiftError
from ...core.files import get_cache_root
from ...loaders.acquire.download_size import compute_download_size
from ...loaders.cache.entries import format_size
from ...splits.schema import Field
from ..recipe import resolve_settings
from .plan import Plan

Resource = Literal["disk", "memory", "device memory"]


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
    needs = [
        Requirement("the download", "disk", size.bytes, change),
        Requirement("copies of local files", "disk", size.own, change),
    ]
    return [need for need in needs if need.bytes]


def list_memory_requirements(plan: Plan, side_by_side: int = 1) -> list[Requirement]:
    """The memory that the training rows of a plan take as numbers, as far as settings and schema say; images that would
    be streamed take none. side_by_side: the number of processes that train at once, each with its own rows."""
    model_inputs, recipe, task = load_cached(plan.benchmark), plan.recipe, plan.benchmark.task
    if model_inputs is None or recipe.estimator or recipe.encoder or task.type != "classification":
        return []
    fields = [model_inputs.schema[name] for name in task.inputs]
    largest = {
        field: max(
            _count_numbers(field, resolve_settings(recipe, plan.benchmark.name, values), len(fields) == 1)
            for values in plan.settings.values()
        )
        for field in fields
    }
    width, (_, advice) = sum(numbers for numbers, _ in largest.values()), max(largest.values())
    rows = sum(model_inputs.count_rows(name) for name in ("train", "id_val") if model_inputs.has_part(name))
    resource: Resource = "memory" if plan.budget.device == "cpu" else "device memory"
    needs = [Requirement(f"the rows as {width:,} numbers each", resource, 4 * width * rows * side_by_side, advice)]
    return needs if width else []


def _count_numbers(field: Field, values: Mapping[str, Any], alone: bool) -> tuple[int, str]:
    """The numbers that a network reads of a field of one row, and how to have fewer. alone: it is the only input."""
    image = field.item == "bytes" or (field.item == "uint8" and len(field.shape) in (2, 3))
    if image and alone and values["feed"] != "resident":
        return 0, ""
    if field.item == "bytes":
        return 3 * values["side"] ** 2, "lower the setting side, or leave feed at auto"
    if field.item == "string":
        return 0 if values["inputs"] == "tokens" else values["buckets"], "lower the setting buckets"
    return prod(field.shape), "leave the setting feed at auto"
