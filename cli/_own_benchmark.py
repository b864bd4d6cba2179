"""A benchmark on a split of the user's own, from what the split says already: `benchmark = {}` in its draft.

The label's type makes the task: whole numbers and truth values are classes, text is a sequence, other numbers are a
regression. Rows that a split does not set apart for validation and for the in-distribution test are held out of
training. The draft may say any of it otherwise, in the words of a benchmark's definition, metrics by their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from pydantic import ValidationError

from ..benchmarks.definition import BenchmarkDefinition
from ..benchmarks.metrics import metric
from ..core.errors import BadDefinition, FarshiftError
from ..core.files import write_atomically
from ..loaders.acquire.source import Source, find_source
from ..splits.manifest import Manifest

if TYPE_CHECKING:
    import pyarrow as pa

_TASKS = {"int64": "classification", "bool": "classification", "string": "sequence", "float64": "regression"}
_METRICS = {"classification": "accuracy", "sequence": "exact_match", "regression": "rmse"}
_HELD_OUT = 0.1


def write_benchmark(manifest: Manifest, said: Mapping[str, Any], home: Path) -> Path:
    """Write `home/benchmarks/definitions/<split>.toml`. A file of that name that says something else is an error."""
    made = definition_for(manifest, said, find_source(manifest.definition.source.name))
    try:
        checked = BenchmarkDefinition.model_validate(made)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(str(step) for step in first["loc"])
        raise BadDefinition(f"{manifest.name}: benchmark {at}: {first['msg']}") from error
    path = home / "benchmarks" / "definitions" / f"{manifest.name.replace('/', '-')}.toml"
    content = tomli_w.dumps(checked.model_dump(exclude_none=True, exclude_defaults=True)).encode()
    if path.exists() and path.read_bytes() != content:
        raise FarshiftError(f"{path} says something else: remove it, or leave `benchmark` out of the draft")
    write_atomically(path, content)
    return path


def definition_for(manifest: Manifest, said: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """The definition of a benchmark on a split; what the draft says comes first."""
    split, fields = manifest.definition, {field.name: field for field in source.schema.fields}
    task = dict(said.get("task", {}))
    task.setdefault("label", split.label)
    kind = fields[split.label].type if split.label in fields else ""
    if "type" not in task and kind not in _TASKS:
        raise BadDefinition(f"{split.name}: a label of type {kind} is no task by itself: say task = {{ type = .. }}")
    task.setdefault("type", _TASKS.get(kind, ""))
    task.setdefault("inputs", [name for name, field in fields.items() if field.role == "input"])
    if task["type"] == "classification" and kind == "string":
        raise BadDefinition(
            f"{split.name}: the label {split.label!r} is text: "
            f'classes = ["{split.label}"] in [data] makes classes of it'
        )
    if task["type"] == "classification" and "classes" not in task:
        names = split.label_names or source.class_names(split.label)
        task |= {"names": names, "classes": len(names)} if names else {"classes": _classes(source.table(), split.label)}
    metrics = said.get("metrics", [_METRICS.get(task["type"], "")])
    tests = [name for name in split.parts if name.endswith("_test") and name != "id_test"]
    held_out = [
        {"part": "train", "to": name, "share": _HELD_OUT} for name in ("id_test", "id_val") if name not in split.parts
    ]
    made = {
        "name": split.name,
        "split": f"{split.name}@{split.version}",
        "title": split.title,
        "holdouts": held_out,
        "views": {"id": {"part": "id_test"}, "ood": {"part": tests[0] if tests else "ood_test"}},
        **said,
    }
    pinned = [{"name": one, "version": metric(one).version} if isinstance(one, str) else one for one in metrics]
    return made | {"task": task, "metrics": pinned}


def _classes(rows: pa.Table, label: str) -> int:
    """How many classes there are: one more than the highest, and two at the least."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(rows[label].cast(pa.int64())).as_py()
    if ends["min"] < 0:
        raise BadDefinition(f"the label {label!r} has the class {ends['min']}: classes are whole numbers from 0")
    return max(2, int(ends["max"]) + 1)
