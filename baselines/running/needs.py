"""What a run is known to take before anything of it is begun: of the disk and of memory, beside what is free.

Known are sizes that definitions state and that the rows have: files to download, training rows in memory, their numbers
as a network reads them. What only a step shows (activations, gradients) is measured by `probe.py`, for
`farshift run --dry-run`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.blind.data import blind_data, prepared
from ...benchmarks.blind.streamed import StreamedBenchmark
from ...core.errors import FarshiftError
from ...core.files import cache_root
from ...loaders.acquire.download_size import download_size
from ...loaders.cache.limit import size_in_words
from ..recipe import complete
from .plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from ...benchmarks.blind.rows import BlindData

Place = Literal["disk", "memory", "device memory"]

_OBJECT = 57
"""Bytes that Python adds to each text of a column in memory: its header, and the pointer to it."""


@dataclass(frozen=True)
class Need:
    """Something that takes room. change: what to change where there is not enough, in words that follow a colon."""

    what: str
    place: Place
    bytes: int
    change: str


def refuse(needs: Sequence[Need], title: str, device: str = "cpu") -> None:
    """`FarshiftError` in one line where the needs of some place come to more than it has free."""
    for problem in lacking(needs, title, device):
        raise FarshiftError(problem)


def lacking(needs: Sequence[Need], title: str, device: str = "cpu") -> list[str]:
    """For each place that has less free than is needed: what takes the most there, and what to change."""
    found = []
    for place in dict.fromkeys(need.place for need in needs):
        some = [need for need in needs if need.place == place]
        total, free = sum(need.bytes for need in some), room(place, device)
        if total > free:
            most = max(some, key=lambda need: need.bytes)
            where = f"{place} of {device}" if place == "device memory" else place
            found.append(
                f"{title} does not fit: it takes {size_in_words(total)} of {where} ({most.what}: "
                f"{size_in_words(most.bytes)}), and {size_in_words(free)} are free: {most.change}"
            )
    return found


def room(place: Place, device: str = "cpu") -> int:
    """The bytes that are free: on the cache's disk, of memory, of the memory of a device."""
    if place == "disk":
        return free_disk()
    from ..training.feed import free_memory

    return free_memory(device if place == "device memory" else "cpu")


def free_disk() -> int:
    """The bytes that are free where the cache lies, or would."""
    folder: Path = cache_root()
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def bring(benchmark: Benchmark) -> None:
    """Have a benchmark's data in the cache, once here and not by every worker. `FarshiftError` before anything is
    downloaded where the disk has no room for it."""
    if not isinstance(benchmark, StreamedBenchmark):
        refuse(disk_needs(benchmark), benchmark.name)
    blind_data(benchmark)


def disk_needs(benchmark: Benchmark) -> list[Need]:
    """What has to be downloaded for a benchmark before it can be run, as far as its source states sizes."""
    if prepared(benchmark) is not None:
        return []
    size = download_size(benchmark.manifest.definition.source.name)
    change = "make room there, or set FARSHIFT_CACHE to a folder on another disk"
    needs = [
        Need("the download", "disk", size.bytes, change),
        Need("copies of files at hand", "disk", size.own, change),
    ]
    return [need for need in needs if need.bytes]


def memory_needs(plan: Plan, side_by_side: int = 1) -> list[Need]:
    """What the rows of a plan take while it is trained; nothing where its data are not in the cache yet. side_by_side:
    how many processes train at once, each with rows of its own."""
    blind = prepared(plan.benchmark)
    if blind is None:
        return []
    held = [name for name in ("train", "id_val") if blind.has_part(name)]
    size = sum(_in_memory(blind, name) for name in held)
    found = [
        Need("the training rows", "memory", size * side_by_side, "train on a smaller benchmark, or by fewer processes")
    ]
    rows = sum(blind.stored(name).num_rows for name in held)
    recipe = plan.recipe
    if recipe.estimator or recipe.encoder or plan.benchmark.task.type != "classification":
        return found
    values = max((_settings(plan, one) for one in plan.settings.values()), key=lambda one: _width(blind, one)[0])
    width, largest = _width(blind, values)
    if not width:
        return found  # tokens and sounds: the trial tells
    if _streamable(blind) and values["feed"] != "resident":
        return found  # streamed where it would not fit
    place: Place = "memory" if plan.budget.device == "cpu" else "device memory"
    return [*found, Need(f"the rows as {width:,} numbers each", place, 4 * width * rows * side_by_side, largest)]


def is_streamed(plan: Plan, blind: BlindData, own: Mapping[str, Any]) -> bool:
    """Whether the feed `auto` would stream a plan's pictures to the device in settings of its `own`, because all of
    them take too much of it."""
    if plan.recipe.estimator or plan.recipe.encoder or not _streamable(blind):
        return False
    from ..training.feed import SHARE, free_memory

    values = _settings(plan, own)
    rows = sum(blind.stored(name).num_rows for name in ("train", "id_val") if blind.has_part(name))
    size = 4 * _width(blind, values)[0] * rows
    return bool(values["feed"] == "auto" and size > SHARE * free_memory(plan.budget.device))


def _settings(plan: Plan, values: Mapping[str, Any]) -> dict[str, Any]:
    return complete(plan.recipe, plan.benchmark.name, values)


def _in_memory(blind: BlindData, name: str) -> int:
    """The bytes of a part's columns as training has them. Files stay in their mapped column."""
    columns = [one for one in blind.stored(name).columns if not is_encoded_type(one.type)]
    return sum(one.nbytes + (0 if _is_number(one.type) else _OBJECT * len(one)) for one in columns)


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_encoded_type(kind))


def is_encoded_type(kind: pa.DataType) -> bool:
    """Whether a column of this type holds files: pictures or sounds."""
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def are_sounds(blind: BlindData) -> bool:
    """Whether a task's only input is files of sounds."""
    from ..encoding.log_mel import is_sound_task

    (name, kind, _), *others = _inputs(blind)
    rows = blind.stored("train")
    if others or not is_encoded_type(kind) or name not in rows.column_names:
        return False
    some = rows[name][:16].to_pylist()
    return is_sound_task(blind.task, {name: np.array([*some, None], object)[:-1]})


def by_side(plan: Plan, blind: BlindData, named: Sequence[str]) -> list[list[str]]:
    """The named settings, those together that read pictures at one size by one decoder: each size is decoded by
    itself."""
    if plan.recipe.estimator or plan.recipe.encoder or not any(is_encoded_type(kind) for _, kind, _ in _inputs(blind)):
        return [list(named)]
    found: dict[tuple[int, str], list[str]] = {}
    for name in named:
        values = _settings(plan, plan.settings[name])
        found.setdefault((values["side"], values["decoder"]), []).append(name)
    return list(found.values())


def _inputs(blind: BlindData) -> Iterator[tuple[str, pa.DataType, Sequence[int]]]:
    for name in blind.task.inputs:
        yield name, blind.kind(name), blind.card["shapes"].get(name, ())


def _width(blind: BlindData, values: Mapping[str, Any]) -> tuple[int, str]:
    """The numbers that a network reads of each row, and what makes them fewer."""
    width, most, change = 0, 0, "choose a smaller network or batch"
    for _, kind, shape in _inputs(blind):
        if is_encoded_type(kind) and are_sounds(blind):
            own, said = 0, ""
        elif is_encoded_type(kind):
            own, said = 3 * values["side"] ** 2, "lower the setting side, or leave feed at auto"
        elif not _is_number(kind):
            own, said = (0, "") if values["inputs"] == "tokens" else (values["buckets"], "lower the setting buckets")
        else:
            own, said = prod(shape), "leave the setting feed at auto"
        width += own
        if own > most:
            most, change = own, said
    return width, change


def _streamable(blind: BlindData) -> bool:
    """Whether the rows are pictures that need not lie on the device: a task's one input, of uint8."""
    inputs = list(_inputs(blind))
    if len(inputs) != 1:
        return False
    _, kind, shape = inputs[0]
    if are_sounds(blind):
        return False
    return is_encoded_type(kind) or (len(shape) in (2, 3) and "uint8" in str(kind))
