"""Open a benchmark's model inputs: from the cache, or from a stream, so that its images or audio are not cached.

Of a streamed benchmark, images and audio of training rows are read on demand, everything else once, into the cache.
Thus models can be trained and scored on a benchmark that was never downloaded completely.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError, UnknownName
from ...core.files import get_cache_root
from ...loaders.batching.columns import join_chunks
from ...loaders.batching.encoded import EncodedFiles
from ...loaders.cache.store import is_intact, load_or_build_table
from ...loaders.part import Part
from ...loaders.split import Split, is_cached
from ...loaders.stream.open import find_manifest_source, stream
from ...loaders.stream.part import StreamedPart
from ...splits.schema import Schema
from ..benchmark import Benchmark, find_benchmark
from .rows import SEEN_IN_TRAINING, ModelInputs

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 256
"""The number of files read at once in a sequential pass."""


def load_model_inputs(benchmark: Benchmark) -> ModelInputs:
    """Open a benchmark's inputs, and the observed labels of the parts that it trains on. The split is pulled and
    verified first if needed, and the benchmark checked against it."""
    pulled = not _is_cached(benchmark)
    inputs = _open_inputs(benchmark)
    if pulled:  # what was built has every label, and may be in reference cycles
        gc.collect()
    return inputs


def load_cached(benchmark: Benchmark) -> ModelInputs | None:
    """Return a benchmark's model inputs; None if its data are not in the cache."""
    return _open_inputs(benchmark) if _is_cached(benchmark) else None


def _is_cached(benchmark: Benchmark) -> bool:
    return benchmark.is_cached() if isinstance(benchmark, StreamedBenchmark) else is_cached(benchmark.manifest)


def _open_inputs(benchmark: Benchmark) -> ModelInputs:
    opened = replace(benchmark)  # with every label; it is gone when this returns
    opened.check()
    task, touch = benchmark.task, benchmark.definition.protocol.touch
    trained_on = {name for name in ("train", "id_val") if opened.has_part(name)}
    if touch.ood_val_labels and opened.has_part("ood_val"):
        trained_on.add("ood_val")
    by_group = touch.adaptation is not None and touch.adaptation.reset == "group"
    parts: dict[str, Part] = {}
    observed: dict[str, dict[str, NDArray[Any]]] = {}
    groups: dict[str, NDArray[np.int64]] = {}
    for name in sorted({*opened.predicted_parts, *trained_on}):
        part = opened.part(name)
        is_light = isinstance(opened, StreamedBenchmark) and name != "train"
        parts[name] = opened.cached_inputs(name) if is_light else part.without_labels()  # type: ignore[attr-defined]
        if name in trained_on:
            known = {key: part.row_metadata[key] for key in SEEN_IN_TRAINING if key in part.row_metadata}
            weight = {"weight": np.ones(len(part), np.int64)} | known
            observed[name] = {task.label: part.observed_labels()} | weight
        if by_group and "group" in part.row_metadata:
            groups[name] = np.unique(part.row_metadata["group"], return_inverse=True)[1]
    return ModelInputs(
        benchmark.name,
        task,
        opened.split.source.schema,
        parts,
        observed,
        groups,
        benchmark.definition.prompt,
        replace(benchmark).open_training_inputs if isinstance(benchmark, StreamedBenchmark) else None,
    )


@dataclass(frozen=True)
class StreamedSplit(Split):
    """A split at `address`, in which `{part}` is replaced by a part's name. Its parts have every column except encoded
    files of inputs, which are read from `stream(part)`. Without an address, only cached parts are available."""

    address: str = ""

    def stream(self, name: str) -> StreamedPart:
        """Return a part as a stream. Raises `FarshiftError` with a hint if the address lacks `{part}`."""
        if name not in self._streams:
            try:
                self._streams[name] = stream(self.manifest.full_name, name, self.address.replace("{part}", name))
            except FarshiftError as error:
                if "{part}" in self.address:
                    raise
                raise FarshiftError(
                    f"{error} (an export has one part: if each part has its own address, write {{part}} in place of "
                    "its name)"
                ) from error
        return self._streams[name]

    @cached_property
    def _streams(self) -> dict[str, StreamedPart]:
        return {}

    @cached_property
    def _parts(self) -> dict[str, Part]:
        return {}

    def cache_path(self, what: str) -> Path:
        name, shape = self.manifest.name.replace("/", "-"), self.source.cached_at.stem.rpartition("-")[2]
        return get_cache_root() / "splits" / f"{name}-{self.manifest.identity[:16]}-{shape}-{what}.arrow"

    def part(self, name: str) -> Part:
        """Return a part without the streamed inputs."""
        import pyarrow as pa

        if name not in self.parts:
            raise UnknownName(f"part of {self.manifest.full_name}", name, self.parts)
        if name not in self._parts:
            rows = load_or_build_table(self.cache_path(name), lambda: _read_light_table(self.stream(name)))
            # The manifest's columns have names that no field has (`/weight`).
            carried = {column[1:]: rows[column] for column in rows.column_names if column.startswith("/")}
            assigned = pa.table({"part": [name] * rows.num_rows, "place": np.arange(rows.num_rows), **carried})
            self._parts[name] = Split(self.manifest, self.source, rows, assigned).part(name)
        return self._parts[name]


def _read_light_table(part: StreamedPart) -> pa.Table:
    import pyarrow as pa

    table = part.load(_select_light_fields(part.schema), report=True).source
    for key, values in part.row_metadata.items():
        table = table.append_column(f"/{key}", pa.array(values))
    if part.override is not None:
        table = table.append_column("/label", pa.array(part.override.data, mask=np.ma.getmaskarray(part.override)))
    return table


def _select_light_fields(schema: Schema) -> tuple[str, ...]:
    """The fields that are cached: all except encoded files of inputs."""
    return tuple(field.name for field in schema.fields if not (field.role == "input" and field.item == "bytes"))


@dataclass(frozen=True)
class StreamedBenchmark(Benchmark):
    """A benchmark on rows at `address`. Identity, parts and true labels are the benchmark's; a part has all columns
    except the streamed inputs. Without an address only the cached columns are available, which is enough to score a
    run."""

    address: str

    @cached_property
    def split(self) -> StreamedSplit:
        import pyarrow as pa

        return StreamedSplit(
            self.manifest, find_manifest_source(self.manifest), pa.table({}), pa.table({}), self.address
        )

    def _published(self, name: str) -> str:
        """The part of the split that has the rows of a part of this benchmark."""
        return next((holdout.part for holdout in self.definition.holdouts if holdout.to == name), name)

    def _stream_part(self, name: str) -> StreamedPart:
        """The rows of `part(name)` as a stream."""
        full_part = self.split.stream(self._published(name))
        return full_part.select(np.searchsorted(full_part.row_ids, self.part(name).row_ids))

    def open_training_inputs(self) -> dict[str, Any]:
        """Return the inputs of training rows as columns that are read from the stream on demand."""
        part = self._stream_part("train")
        return {name: StreamedFiles(part, name) for name in self.task.inputs}

    def cached_inputs(self, name: str) -> Part:
        """Return the inputs of `part(name)`, which are read from the stream once, into the cache."""
        rows = self.part(name)
        digest = blake2b(rows.row_ids.tobytes(), digest_size=8).hexdigest()
        names = tuple(field.name for field in self.split.source.schema.of_role("input"))
        build = lambda: self._stream_part(name).load(names, report=True).source  # noqa: E731
        table = load_or_build_table(self.split.cache_path(f"{name}-{digest}-inputs"), build)
        return replace(rows, source=table, source_indices=np.arange(len(rows)), row_metadata={}).without_labels()

    def is_cached(self) -> bool:
        """Whether what is read only once is in the cache: every column except streamed inputs."""
        names = {self._published(name) for name in ("train", *self.predicted_parts)}
        return all(is_intact(self.split.cache_path(name)) for name in names)

    def refuse(self, selection: str | None) -> None:
        """`FarshiftError` if the benchmark cannot be streamed: because of inputs that are held in memory, or training
        rows that are also predicted."""
        schema, leave = self.split.source.schema, "leave --stream out"
        for name in self.task.inputs:
            if name in _select_light_fields(schema):
                raise FarshiftError(
                    f"{self.name}: only images and audio files can be streamed, and its input {name!r} is "
                    f"{schema[name].type}: {leave}"
                )
        rule = self.rule(selection)
        if rule.folds is not None:
            raise FarshiftError(
                f"{self.name}: {rule.name} also trains without some of the training rows and predicts those, which a "
                "stream does not store: choose another --selection"
            )
        if "train" in self.predicted_parts:
            raise FarshiftError(f"{self.name} also predicts its training rows, which a stream does not store: {leave}")


def find_streamed_benchmark(name: str, address: str) -> Benchmark:
    """Return the benchmark of this name, on the rows at an address if one is given; nothing is read yet."""
    benchmark = find_benchmark(name)
    return _stream_benchmark(benchmark, address) if address else benchmark


def use_cached_stream(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark on its cached stream, for scoring; unchanged if the cache lacks a part."""
    cached = _stream_benchmark(benchmark, "")
    return cached if cached.is_cached() else benchmark


def _stream_benchmark(benchmark: Benchmark, address: str) -> StreamedBenchmark:
    own = {field.name: getattr(benchmark, field.name) for field in fields(Benchmark)}
    return StreamedBenchmark(**own, address=address)


class StreamedFiles(EncodedFiles):
    """Encoded files of a streamed part: each step reads and verifies the rows that it needs, so that images of shards
    that do not fit on the disk can be trained on."""

    def __init__(self, part: StreamedPart, name: str) -> None:
        self.part, self.name = part, name
        self.places = np.arange(len(part))

    def content(self, index: int) -> memoryview:
        return memoryview(self.contents([index])[0])

    def contents(self, places: Sequence[int] | NDArray[np.int64]) -> list[bytes | memoryview]:
        rows, back = np.unique(np.asarray(places, np.int64), return_inverse=True)  # each is read once
        values = join_chunks(self.part.select(rows).load((self.name,)).source[self.name])
        return [memoryview(values[row].as_buffer()) for row in back.tolist()]

    @cached_property
    def key(self) -> str:
        """By the manifest, against which every row is verified, and the selected rows."""
        rows = blake2b(self.part.row_ids.tobytes(), digest_size=16).hexdigest()
        return f"{self.part.identity}/{self.part.name}/{self.name}/{rows}"

    def _some(self, places: NDArray[np.int64]) -> StreamedFiles:
        return StreamedFiles(self.part.select(places), self.name)

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self), _AT_ONCE):
            yield from map(bytes, self.contents(np.arange(start, min(start + _AT_ONCE, len(self)))))


def remove_secrets(address: str) -> str:
    """Return an address for a run card: without credentials and query, and only the name of a local folder."""
    if address.startswith("hf://"):
        return address
    if not address.startswith(("http://", "https://")):
        tail_length = 2 if "{part}" in address.rpartition("/")[2] else 1
        return "/".join(Path(address).expanduser().absolute().parts[-tail_length:])
    at = urlsplit(address)
    return urlunsplit((at.scheme, at.netloc.rpartition("@")[2], at.path, "", ""))
