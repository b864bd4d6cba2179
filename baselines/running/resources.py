"""The disk space and memory that a run is known to need before it starts, compared with what is free.

Sizes that definitions state and that the rows have are known: files to download, training rows in memory, their numbers
as a network reads them. What needs a step to find out (activations, gradients) is measured by `probe.py`, for
`farshift run --dry-run`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.model_inputs.load import load_cached, load_model_inputs
from ...benchmarks.model_inputs.rows import ModelInputs
from ...benchmarks.model_inputs.streamed import StreamedBenchmark
from ...core.errors import FarshiftError
from ...core.files import get_cache_root
from ...loaders.acquire.download_size import compute_download_size
from ...loaders.cache.entries import format_size
from ...splits.schema import Field
from ..recipe import resolve_settings
from .plan import Plan

Resource = Literal["disk", "memory", "device memory"]

_OBJECT = 57
"""Bytes that Python adds to each text of a column in memory: its header, and the pointer to it."""


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
    """The free bytes of a resource: the cache's disk, memory, or the memory of a device."""
    if resource == "disk":
        return get_free_disk()
    from ..training.feed import get_free_memory

    return get_free_memory(device if resource == "device memory" else "cpu")


def get_free_disk() -> int:
    """The free bytes of the disk that the cache is on, or would be on."""
    folder: Path = get_cache_root()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


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
    """The memory that the rows of a plan need in training; empty if its data are not in the cache yet. side_by_side:
    the number of processes that train at once, each with its own rows."""
    model_inputs = load_cached(plan.benchmark)
    if model_inputs is None:
        return []
    parts = [name for name in ("train", "id_val") if model_inputs.has_part(name)]
    size = sum(_count_memory_bytes(model_inputs, name) for name in parts)
    requirements = [
        Requirement(
            "the training rows", "memory", size * side_by_side, "train on a smaller benchmark, or by fewer processes"
        )
    ]
    rows = sum(model_inputs.count_rows(name) for name in parts)
    recipe = plan.recipe
    if recipe.estimator or recipe.encoder or plan.benchmark.task.type != "classification":
        return requirements
    values = max(
        (_resolve_plan_settings(plan, candidate) for candidate in plan.settings.values()),
        key=lambda candidate: _count_input_numbers(model_inputs, candidate)[0],
    )
    width, largest = _count_input_numbers(model_inputs, values)
    if not width:
        return requirements  # tokens and audio: measured in the trial
    if _is_streamable(model_inputs) and values["feed"] != "resident":
        return requirements  # streamed if they would not fit
    resource: Resource = "memory" if plan.budget.device == "cpu" else "device memory"
    return [
        *requirements,
        Requirement(f"the rows as {width:,} numbers each", resource, 4 * width * rows * side_by_side, largest),
    ]


def is_streamed(plan: Plan, model_inputs: ModelInputs, own: Mapping[str, Any]) -> bool:
    """Whether the feed `auto` would stream a plan's images to the device, with settings of its `own`, because all of
    them would take too much of its memory."""
    if plan.recipe.estimator or plan.recipe.encoder or not _is_streamable(model_inputs):
        return False
    from ..training.feed import SHARE, get_free_memory

    values = _resolve_plan_settings(plan, own)
    rows = sum(model_inputs.count_rows(name) for name in ("train", "id_val") if model_inputs.has_part(name))
    size = 4 * _count_input_numbers(model_inputs, values)[0] * rows
    return bool(values["feed"] == "auto" and size > SHARE * get_free_memory(plan.budget.device))


def _resolve_plan_settings(plan: Plan, values: Mapping[str, Any]) -> dict[str, Any]:
    return resolve_settings(plan.recipe, plan.benchmark.name, values)


def _count_memory_bytes(model_inputs: ModelInputs, name: str) -> int:
    """The bytes of a part's columns in training. Files stay in their memory-mapped column."""
    part, observed = model_inputs.parts[name], model_inputs.observed[name]
    size = part.row_ids.nbytes + sum(column.nbytes for column in observed.values())
    size += sum(_OBJECT + len(str(text)) for text in _iterate_texts(observed.values()))
    for field in _list_inputs(model_inputs):
        if field.item != "bytes" and field.name in part.source.column_names:
            stored = part.source[field.name]
            size += stored.nbytes * len(part) // max(1, len(stored))
            size += _OBJECT * len(part) if field.item == "string" else 0
    return size


def _iterate_texts(columns: Iterable[NDArray[Any]]) -> Iterator[Any]:
    for column in columns:
        if column.dtype == object:
            yield from column


def is_audio_input(model_inputs: ModelInputs) -> bool:
    """Whether a task's only input is audio files."""
    from ..encoding.log_mel import is_audio_task

    field, *others = _list_inputs(model_inputs)
    files = model_inputs.part("train").files.get(field.name)
    return not others and files is not None and is_audio_task(model_inputs.task, {field.name: np.asarray(files[:16])})


def group_by_image_size(plan: Plan, model_inputs: ModelInputs, named: Sequence[str]) -> list[list[str]]:
    """Group the named settings that read images at one size by one decoder: each size is decoded separately."""
    if (
        plan.recipe.estimator
        or plan.recipe.encoder
        or not any(field.item == "bytes" for field in _list_inputs(model_inputs))
    ):
        return [list(named)]
    groups: dict[tuple[int, str], list[str]] = {}
    for name in named:
        values = _resolve_plan_settings(plan, plan.settings[name])
        groups.setdefault((values["side"], values["decoder"]), []).append(name)
    return list(groups.values())


def _list_inputs(model_inputs: ModelInputs) -> list[Field]:
    return [model_inputs.schema[name] for name in model_inputs.task.inputs]


def _count_input_numbers(model_inputs: ModelInputs, values: Mapping[str, Any]) -> tuple[int, str]:
    """The number of values that a network reads of each row, and how to reduce it."""
    width, most, change = 0, 0, "choose a smaller network or batch"
    for field in _list_inputs(model_inputs):
        if field.item == "bytes" and is_audio_input(model_inputs):
            own, advice = 0, ""
        elif field.item == "bytes":
            own, advice = 3 * values["side"] ** 2, "lower the setting side, or leave feed at auto"
        elif field.item == "string":
            own, advice = (0, "") if values["inputs"] == "tokens" else (values["buckets"], "lower the setting buckets")
        else:
            own, advice = prod(field.shape), "leave the setting feed at auto"
        width += own
        if own > most:
            most, change = own, advice
    return width, change


def _is_streamable(model_inputs: ModelInputs) -> bool:
    """Whether the rows are images that need not be on the device: a task's only input, of uint8."""
    field, *others = _list_inputs(model_inputs)
    if others or is_audio_input(model_inputs):
        return False
    return field.item == "bytes" or (len(field.shape) in (2, 3) and field.item == "uint8")
