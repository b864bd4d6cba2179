"""Open a benchmark's model inputs."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...loaders.part import Part
from ...loaders.split import is_cached
from ..benchmark import Benchmark
from .rows import SEEN_IN_TRAINING, ModelInputs
from .streamed import StreamedBenchmark


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
