"""Model inputs: rows without the labels that they are scored by, in separate files.

What trains and queries a model must not hold a test label, not even in a mapped file. Therefore the split is opened
once, the benchmark checked against it, and one Arrow file per part written into the cache: row ids and inputs; for
training and validation rows also the observed label, weight and group. The harness opens only these files.
"""

from __future__ import annotations

import base64
import gc
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.canonical import compute_identity, to_canonical_json
from ...core.errors import FarshiftError
from ...core.files import get_cache_root, hold_lock
from ...core.progress import log_message
from ...loaders.cache.store import is_intact, load_or_build_table, store_bytes
from ...loaders.part import Part, to_classes
from ..benchmark import Benchmark
from ..model import Task
from ..prompting.prompt import draw_shots
from .rows import FILE, SEEN_IN_TRAINING, ModelInputs
from .streamed import StreamedBenchmark
from .streamed_rows import StreamedInputs

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1

CARD = "handout.json"
"""The card of the model inputs: the definition, the parts, shapes, and the examples of the prompt."""


def _get_cache_folder(benchmark: Benchmark) -> Path:
    decides = {"format": FORMAT, "manifest": benchmark.manifest.identity, "definition": _dump_definition(benchmark)}
    if isinstance(benchmark, StreamedBenchmark):
        decides["streamed"] = True  # the address does not matter: each row is checked against the manifest
    return get_cache_root() / "handouts" / f"{benchmark.name.replace('/', '-')}-{compute_identity(decides)[:16]}"


def _dump_definition(benchmark: Benchmark) -> dict[str, Any]:
    return benchmark.definition.model_dump(mode="json")


def load_model_inputs(benchmark: Benchmark) -> ModelInputs:
    """Return a benchmark's model inputs. If they are not in the cache, they are written first: the split is pulled and
    verified, and the benchmark checked against it."""
    folder = _get_cache_folder(benchmark)
    cached = _open_cached(folder, benchmark)
    if cached is None:
        with hold_lock(folder.with_suffix(".making"), benchmark.name):
            cached = _open_cached(folder, benchmark)
            if cached is None:
                write_model_inputs(replace(benchmark), folder)
                gc.collect()  # with the copy of the benchmark, every row that it opened is gone
                cached = _open_cached(folder, benchmark)
    if cached is None:
        raise FarshiftError(
            f"{folder}: the model inputs of {benchmark.name} cannot be read: remove the folder and try again"
        )
    return cached


def load_cached(benchmark: Benchmark) -> ModelInputs | None:
    """Return a benchmark's model inputs from the cache; None if `load_model_inputs` would have to write them."""
    return _open_cached(_get_cache_folder(benchmark), benchmark)


def _open_cached(folder: Path, benchmark: Benchmark) -> ModelInputs | None:
    if not is_intact(folder / CARD):
        return None
    card = json.loads((folder / CARD).read_text("utf-8"))
    is_complete = all(is_intact(folder / f"{name}.arrow") for name in card["streams"])
    if not is_complete:
        return None
    if isinstance(benchmark, StreamedBenchmark):
        return StreamedInputs(folder, benchmark.task, card, benchmark)
    return ModelInputs(folder, benchmark.task, card)


def write_model_inputs(benchmark: Benchmark, folder: Path) -> None:
    """Write a benchmark's model inputs into `folder`, the card last."""
    benchmark.check()
    definition = benchmark.definition
    touch = definition.protocol.touch
    training = {name for name in ("train", "id_val") if benchmark.has_part(name)}
    if touch.ood_val_labels and benchmark.has_part("ood_val"):
        training.add("ood_val")
    grouped = touch.adaptation is not None and touch.adaptation.reset == "group"
    card: dict[str, Any] = {"format": FORMAT, "definition": _dump_definition(benchmark), "streams": {}, "shapes": {}}
    for name in sorted({*benchmark.predicted_parts, *training}):
        task = benchmark.task
        if not isinstance(benchmark, StreamedBenchmark):
            part = benchmark.part(name)
        elif name == "train":
            part, task = benchmark.part(name), replace(task, inputs=())
        else:
            part = benchmark.read(name)
        visible = partial(_select_input_columns, part, task, name in training, grouped)
        load_or_build_table(folder / f"{name}.arrow", visible)
        card["streams"][name] = f"{part.identity}/{part.name}"
    schema = benchmark.split.source.schema
    card["shapes"] = {name: list(schema[name].shape) for name in benchmark.task.inputs if schema[name].shape}
    if definition.prompt is not None and not isinstance(benchmark, StreamedBenchmark):
        train = benchmark.part("train")
        shown = train.numpy([*benchmark.task.inputs, benchmark.task.label, "row_id"])
        shown[benchmark.task.label] = to_classes(shown[benchmark.task.label])
        card["shots"] = [
            _to_json_row(row) for row in draw_shots(definition.prompt, benchmark.name, shown, benchmark.task)
        ]
    if (folder / f"{CARD}.ok").exists() and not is_intact(folder / CARD):
        log_message(f"{folder / CARD} is truncated or modified: building it again")
    store_bytes(folder / CARD, to_canonical_json(card))


def _to_json_row(row: Any) -> dict[str, Any]:
    return {key: _to_json_value(value) for key, value in row.items()}


def _to_json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return {FILE: base64.b64encode(value).decode()}
    return value.tolist() if hasattr(value, "tolist") else value


def _select_input_columns(part: Part, task: Task, training: bool, grouped: bool) -> pa.Table:
    """Return the columns of a part that a model may see."""
    import pyarrow as pa

    names = ["row_id", *task.inputs]
    if training:
        names += [task.label, *(name for name in SEEN_IN_TRAINING if name in part.columns)]
    table = part.arrow(names)
    if training and "weight" not in names:
        table = table.append_column("weight", pa.array(np.ones(len(part), np.int64)))
    if grouped and "group" in part.row_metadata:
        # Group indices 0, 1, 2 .. in the order of the names, without the names themselves.
        table = table.append_column(
            "asked_group", pa.array(np.unique(part.row_metadata["group"], return_inverse=True)[1])
        )
    return table
