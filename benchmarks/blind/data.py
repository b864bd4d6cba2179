"""What a model is handed: rows without the labels they are scored by, in files of their own.

The process that trains and asks a model must not hold a test label, not even in a mapped file. So another process
(`python -m farshift.benchmarks.blind.data data`) opens the split, checks the benchmark against it, and writes one Arrow
file a part into the cache: row ids and inputs; for training and validation rows also the label as given, weight and
group. The harness opens these files only.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.canonical import canonical_json, identity_of
from ...core.errors import FarshiftError
from ...core.files import cache_root, locked
from ...core.isolation.elsewhere import Fail, done_elsewhere, serve
from ...core.progress import say
from ...loaders.cache.store import intact, store_bytes, stored_table
from ...loaders.part import Part, as_classes
from ..benchmark import Benchmark
from ..definition import BenchmarkDefinition
from ..model import Task
from ..prompting.prompt import draw_shots
from .rows import FILE, SEEN_IN_TRAINING, BlindData
from .streamed import StreamedBenchmark, streamed
from .streamed_rows import StreamedData

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1

CARD = "handout.json"
"""What blind data are: the definition, the parts, shapes, and the examples of the prompt."""


def _folder(benchmark: Benchmark) -> Path:
    decides = {"format": FORMAT, "manifest": benchmark.manifest.identity, "definition": _stated(benchmark)}
    if isinstance(benchmark, StreamedBenchmark):
        decides["streamed"] = True  # wherever from: every row is held to the manifest
    return cache_root() / "handouts" / f"{benchmark.name.replace('/', '-')}-{identity_of(decides)[:16]}"


def _stated(benchmark: Benchmark) -> dict[str, Any]:
    return benchmark.definition.model_dump(mode="json")


def blind_data(benchmark: Benchmark) -> BlindData:
    """A benchmark's blind data, written by another process where it is not in the cache yet (which also pulls and
    verifies the split, and checks the benchmark against it)."""
    folder = _folder(benchmark)
    found = _opened(folder, benchmark)
    if found is None:
        with locked(folder.with_suffix(".making"), benchmark.name):
            found = _opened(folder, benchmark)
            if found is None:
                _write_elsewhere(benchmark, folder)
                found = _opened(folder, benchmark)
    if found is None:
        raise FarshiftError(
            f"{folder}: the blind data of {benchmark.name} cannot be read back: remove it and try again"
        )
    return found


def prepared(benchmark: Benchmark) -> BlindData | None:
    """A benchmark's blind data where they are in the cache; None where `blind_data` would have to write them."""
    return _opened(_folder(benchmark), benchmark)


def _opened(folder: Path, benchmark: Benchmark) -> BlindData | None:
    if not intact(folder / CARD):
        return None
    card = json.loads((folder / CARD).read_text("utf-8"))
    whole = all(intact(folder / f"{name}.arrow") for name in card["streams"])
    if not whole:
        return None
    if isinstance(benchmark, StreamedBenchmark):
        return StreamedData(folder, benchmark.task, card, benchmark)
    return BlindData(folder, benchmark.task, card)


def _write_elsewhere(benchmark: Benchmark, folder: Path) -> None:
    """Have a child process write the blind data; its progress is reported here, its errors are raised here."""
    address = benchmark.address if isinstance(benchmark, StreamedBenchmark) else ""
    asked = {"definition": _stated(benchmark), "path": str(benchmark.path), "folder": str(folder), "stream": address}
    done_elsewhere(f"{__package__}.data", asked, f"preparing {benchmark.name}")


def write_blind_data(benchmark: Benchmark, folder: Path) -> None:
    """Write a benchmark's blind data into `folder`, its card last."""
    benchmark.check()
    definition = benchmark.definition
    touch = definition.protocol.touch
    training = {name for name in ("train", "id_val") if benchmark.has_part(name)}
    if touch.ood_val_labels and benchmark.has_part("ood_val"):
        training.add("ood_val")
    grouped = touch.adaptation is not None and touch.adaptation.reset == "group"
    card: dict[str, Any] = {"format": FORMAT, "definition": _stated(benchmark), "streams": {}, "shapes": {}}
    for name in sorted({*benchmark.predicted_parts, *training}):
        task = benchmark.task
        if not isinstance(benchmark, StreamedBenchmark):
            part = benchmark.part(name)
        elif name == "train":
            part, task = benchmark.part(name), replace(task, inputs=())
        else:
            part = benchmark.read(name)
        visible = partial(_visible, part, task, name in training, grouped)
        stored_table(folder / f"{name}.arrow", visible)
        card["streams"][name] = f"{part.identity}/{part.name}"
    schema = benchmark.split.source.schema
    card["shapes"] = {name: list(schema[name].shape) for name in benchmark.task.inputs if schema[name].shape}
    if definition.prompt is not None and not isinstance(benchmark, StreamedBenchmark):
        train = benchmark.part("train")
        shown = train.numpy([*benchmark.task.inputs, benchmark.task.label, "row_id"])
        shown[benchmark.task.label] = as_classes(shown[benchmark.task.label])
        card["shots"] = [_json_row(row) for row in draw_shots(definition.prompt, benchmark.name, shown, benchmark.task)]
    if (folder / f"{CARD}.ok").exists() and not intact(folder / CARD):
        say(f"{folder / CARD} was cut off or changed: writing it again")
    store_bytes(folder / CARD, canonical_json(card))


def _json_row(row: Any) -> dict[str, Any]:
    return {key: _plain(value) for key, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {FILE: base64.b64encode(value).decode()}
    return value.tolist() if hasattr(value, "tolist") else value


def _visible(part: Part, task: Task, training: bool, grouped: bool) -> pa.Table:
    """The columns of a part that a model may see."""
    import pyarrow as pa

    names = ["row_id", *task.inputs]
    if training:
        names += [task.label, *(name for name in SEEN_IN_TRAINING if name in part.columns)]
    table = part.arrow(names)
    if training and "weight" not in names:
        table = table.append_column("weight", pa.array(np.ones(len(part), np.int64)))
    if grouped and "group" in part.carried:
        # Which rows belong together, not what their group is called: 0, 1, 2 .. in the order of the names.
        table = table.append_column("asked_group", pa.array(np.unique(part.carried["group"], return_inverse=True)[1]))
    return table


def _write(request: dict[str, Any], _: Fail) -> None:
    """The child process."""
    definition = BenchmarkDefinition.model_validate(request["definition"])
    benchmark = Benchmark(definition, Path(request["path"]))
    if request["stream"]:
        benchmark = streamed(benchmark, request["stream"])
    write_blind_data(benchmark, Path(request["folder"]))


if __name__ == "__main__":
    serve(_write)
