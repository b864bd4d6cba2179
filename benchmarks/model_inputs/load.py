"""Open a benchmark's model inputs: from the cache, or from a stream, so that its images or audio are not cached."""

from __future__ import annotations

import gc
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from ...core.files import get_cache_root
from ...loaders.cache.store import load_or_build_table
from ...loaders.part import Part
from ...loaders.split import is_cached
from ...loaders.stream.part import StreamedPart
from ...loaders.stream.split import StreamedSplit, find_streamed_inputs, select_light_fields
from ..benchmark import Benchmark, find_benchmark
from .rows import SEEN_IN_TRAINING, ModelInputs


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
        if isinstance(opened, StreamedBenchmark) and name != "train":
            parts[name] = opened.cached_inputs(name)
        else:
            parts[name] = part.without_labels()
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
class StreamedBenchmark(Benchmark):
    """A benchmark on rows at `address`, in which `{part}` is replaced by a part's name. Identity, parts and true labels
    are the benchmark's; a part has all columns except the streamed inputs. Without an address only the cached columns
    are available, which is enough to score a run."""

    address: str

    @cached_property
    def split(self) -> StreamedSplit:
        return StreamedSplit.at(self.manifest, self.address)

    def published(self, name: str) -> str:
        """Return the part of the split that has the rows of a part of this benchmark."""
        return next((holdout.part for holdout in self.definition.holdouts if holdout.to == name), name)

    def streamed(self, name: str) -> StreamedPart:
        """Return the rows of `part(name)` as a stream."""
        full_part = self.split.stream(self.published(name))
        return full_part.select(np.searchsorted(full_part.row_ids, self.part(name).row_ids))

    def open_training_inputs(self) -> dict[str, Any]:
        """Return the inputs of training rows as columns that are read from the stream on demand."""
        return dict(find_streamed_inputs(self.streamed("train"), self.task.inputs))

    def cached_inputs(self, name: str) -> Part:
        """Return the inputs of `part(name)`, which are read from the stream once, into the cache."""
        rows = self.part(name)
        digest = blake2b(rows.row_ids.tobytes(), digest_size=8).hexdigest()
        file = f"{self.manifest.name.replace('/', '-')}-{self.manifest.identity[:16]}-{name}-{digest}-inputs.arrow"
        names = tuple(field.name for field in self.split.source.schema.of_role("input"))
        table = load_or_build_table(
            get_cache_root() / "splits" / file, lambda: self.streamed(name).load(names, report=True).source
        )
        return replace(rows, source=table, source_indices=np.arange(len(rows)), row_metadata={}).without_labels()

    def is_cached(self) -> bool:
        """Whether what is read only once is in the cache: every column except streamed inputs."""
        return all(self.split.is_kept(self.published(name)) for name in ("train", *self.predicted_parts))

    def refuse(self, selection: str | None) -> None:
        """`FarshiftError` if the benchmark cannot be streamed: because of inputs that are held in memory, or training
        rows that are also predicted."""
        schema, leave = self.split.source.schema, "leave --stream out"
        for name in self.task.inputs:
            if name in select_light_fields(schema):
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


def make_streamed_benchmark(benchmark: Benchmark, address: str) -> StreamedBenchmark:
    """Return a benchmark on the rows at an address; nothing is read yet."""
    own = {field.name: getattr(benchmark, field.name) for field in fields(Benchmark)}
    return StreamedBenchmark(**own, address=address)


def find_streamed_benchmark(name: str, address: str) -> Benchmark:
    """Return the benchmark of this name, on the rows at an address if one is given."""
    benchmark = find_benchmark(name)
    return make_streamed_benchmark(benchmark, address) if address else benchmark


def use_cached_stream(benchmark: Benchmark) -> Benchmark:
    """Return a benchmark on its cached stream, for scoring; unchanged if the cache lacks a part."""
    cached = make_streamed_benchmark(benchmark, "")
    return cached if cached.is_cached() else benchmark
