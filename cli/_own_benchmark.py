"""A benchmark on a user's own split, derived from its draft: `benchmark = {}` in the draft.

The label's type makes the task: whole numbers and truth values are classes, text is a sequence, other numbers are a
regression. Rows that a split does not set apart for validation and for the in-distribution test are held out of
training. Where training labels are wrong, the OOD view are the rows that were trained with a wrong one. The draft may
say any of it otherwise, in the words of a benchmark's definition, metrics by their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from pydantic import ValidationError

from ..benchmarks.benchmark import Benchmark, load_benchmarks, make_benchmark_on, read_benchmarks
from ..benchmarks.definition import BenchmarkDefinition
from ..benchmarks.metrics import find_metric
from ..core.errors import BadDefinition, FarshiftError, shorten_list
from ..core.plugins import describe_problem
from ..core.progress import log_message
from ..core.text import format_count, write_inline
from ..loaders.acquire.labels import MOST_CLASSES, infer_task
from ..loaders.acquire.own_source import is_unedited, mark_generated, strip_mark
from ..loaders.freezing.check_labels import find_highest_class, report_absent_classes
from ..loaders.freezing.freeze import Draft, PreparedSplit
from ..loaders.split import Split, make_split
from ..splits.rows import digest_repeated_inputs

_METRICS = {
    "classification": "accuracy",
    "sequence": "exact_match",
    "regression": "rmse",
    "multilabel": "multilabel_average_precision",
    "detection": "mean_average_precision",
}
_HELD_OUT = 0.1
_TRAINED_WRONG = {"part": "train", "rows": "corrupted", "against": "true"}
_OF_WRONG_LABELS = {
    "ood": _TRAINED_WRONG,
    "restored": _TRAINED_WRONG,
    "memorised": {"part": "train", "rows": "corrupted", "against": "given"},
    "fit_clean": {"part": "train", "rows": "clean", "against": "true"},
}
"""The views of a benchmark on training labels that are wrong, as those have that are shipped."""

_FITTING = {
    "classification": (("int64", "bool"), 'to use it as classes, write classes = ["{0}"] in [data]'),
    "sequence": (("string",), 'to keep it as text, write types = {{ {0} = "string" }} in [data]'),
    "regression": (
        ("float64", "int64", "bool"),
        'to read it as numbers, write types = {{ {0} = "float64" }} in [data]',
    ),
}
"""The types of label that a task accepts, and how to convert another label."""


class DraftedBenchmarks:
    """The benchmarks that drafts ask for, each on the split that its draft makes: called with each, gives the file that
    is to be written. `paths`: of these files."""

    def __init__(self, home: Path) -> None:
        self.home, self.paths = home, list[Path]()

    def __call__(self, draft: Draft, path: Path, prepared: PreparedSplit) -> list[tuple[Path, bytes]]:
        if draft.benchmark is None:
            return []
        split = make_split(prepared.manifest, prepared.source, prepared.rows, prepared.assigned)
        files = prepare_benchmark(split, draft.benchmark, self.home, path)
        self.paths += [file for file, _ in files]
        return files


def prepare_benchmark(split: Split, options: Mapping[str, Any], home: Path, draft: Path) -> list[tuple[Path, bytes]]:
    """The file `home/benchmarks/definitions/<split>.toml` of a benchmark on a split, checked in full against its rows;
    nothing where the file of a later version of the split is to stay. A file of that name that a build wrote is
    replaced; one that was written or edited by hand is an error, where it says something else. `draft`: the file that
    errors name."""
    name = split.manifest.name
    record = make_definition(split, options)
    try:
        definition = BenchmarkDefinition.model_validate(record)
    except ValidationError as error:
        problem = describe_problem(error.errors()[0], BenchmarkDefinition)
        raise BadDefinition(f"{name}: benchmark {problem} (docs/protocol.md has every key)") from error
    benchmark = make_benchmark_on(split, definition, draft)
    benchmark.check()
    _announce_shared_inputs(split, benchmark)
    path = home / "benchmarks" / "definitions" / f"{name.replace('/', '-')}.toml"
    content = tomli_w.dumps(definition.model_dump(exclude_none=True, exclude_defaults=True)).encode()
    if not path.exists():
        if (known := load_benchmarks().get(definition.name)) is not None:
            raise FarshiftError(
                f"a benchmark named {definition.name!r} exists already ({known.path}): rename yours with "
                "benchmark = { name = .. }, or remove `benchmark` from the draft"
            )
    elif strip_mark(path.read_bytes()) == content:
        return [(path, path.read_bytes())]
    elif not is_unedited(path):
        raise FarshiftError(
            f"{path} differs from the draft, and was written or edited by hand: delete it, or remove `benchmark` from "
            "the draft"
        )
    else:
        before = read_benchmarks(path)[0].definition.split
        if int(before.rpartition("@")[2]) > split.manifest.definition.version:
            log_message(f"{path} is unchanged, on {before}: delete it to build a benchmark on {definition.split}")
            return []
        log_message(
            f"replacing {path}: it was built on {before}{' from another draft' if before == definition.split else ''}"
        )
    return [(path, mark_generated(content))]


def _announce_shared_inputs(split: Split, benchmark: Benchmark) -> None:
    """Say how many rows that are held out of a part have inputs that rows of this part have too: a model may know their
    labels by heart."""
    places, digests = digest_repeated_inputs(split.rows, split.source.schema)
    for holdout in benchmark.definition.holdouts:
        kept_rows, test_rows = (benchmark.part(name).source_indices for name in (holdout.part, holdout.to))
        shared = np.isin(digests[np.isin(places, test_rows)], digests[np.isin(places, kept_rows)]).sum()
        if shared:
            log_message(
                f"{benchmark.name}: {shared:,} of the {format_count(len(test_rows), 'row')} held out as {holdout.to} "
                f"have inputs that rows of {holdout.part} have too, which a model may know by heart: let the rule make "
                f"{holdout.to}, with inputs of its own"
            )


def make_definition(split: Split, options: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of a benchmark on a split; what the draft says comes first."""
    definition, task = split.manifest.definition, _infer_task(split, dict(options.get("task", {})))
    metrics = options.get("metrics", [_METRICS.get(task["type"], "")])
    record = {
        "name": definition.name,
        "split": split.manifest.full_name,
        "title": definition.title,
        "holdouts": [
            {"part": "train", "to": name, "share": _HELD_OUT}
            for name in ("id_test", "id_val")
            if name not in definition.parts
        ],
        "views": _choose_views(split),
        **options,
    }
    has_validation = "id_val" in definition.parts or "'id_val'" in str(record["holdouts"])  # not validated yet
    rules = ["last", "id_val"] if has_validation else ["last"]
    if "views" not in options and record["views"].keys() > {"id", "ood"}:
        rules.append("clean_val")
    protocol = options.get("protocol", {})
    record["protocol"] = {"selection": rules, **protocol} if isinstance(protocol, Mapping) else protocol
    if isinstance(metrics, list):
        metrics = [
            {"name": entry, "version": find_metric(entry).version} if isinstance(entry, str) else entry
            for entry in metrics
        ]
    return record | {"task": task, "metrics": metrics}


def _choose_views(split: Split) -> dict[str, Any]:
    """The rows of the ID and the OOD score; of wrong training labels also what of them is memorised, what restored."""
    views: dict[str, Any] = {"id": {"part": "id_test"}, "ood": {"part": "ood_test"}}
    if split.manifest.definition.kind != "corrupted-label":
        return views
    is_wrong = split.part("train").corrupted
    of_wrong = {name: view for name, view in _OF_WRONG_LABELS.items() if name != "fit_clean" or not is_wrong.all()}
    return views | (of_wrong if is_wrong.any() else {})


def _infer_task(split: Split, task: dict[str, Any]) -> dict[str, Any]:
    """The task of the label: what the draft says of it, and else what its type, its values and its names tell."""
    definition, source = split.manifest.definition, split.source
    label = source.schema[definition.label]
    names = task.get("names") or definition.label_names or source.class_names(label.name)
    is_counted = label.type == "int64" and ("classes" in task or "classes" in definition.parameters)
    inferred = infer_task(label, split.rows[label.name], names)
    kind = task.setdefault("type", "classification" if is_counted else inferred.type)
    if not kind:
        raise BadDefinition(f"{definition.name}: {inferred.why}")
    fitting, remedy = _FITTING.get(kind, ((label.type,), ""))
    if label.type not in fitting:
        of = "text" if label.type == "string" else f"of type {label.type}"
        raise BadDefinition(f"{definition.name}: the label {label.name!r} is {of}: {remedy.format(label.name)}")
    if kind == "multilabel" and label.shape:
        task.setdefault("classes", label.shape[0])
        values = np.unique(split.rows[label.name].combine_chunks().flatten())
        if len(others := values[~np.isin(values, (0, 1)) & ~np.isnan(values)]):
            raise BadDefinition(
                f"{definition.name}: the label {label.name!r} has {others[0]:g}: those of a multilabel task are 0, 1, "
                "or NaN if unknown"
            )
    task.setdefault("label", label.name)
    task.setdefault("inputs", [field.name for field in source.schema.of_role("input")])
    return _count_classes(split, task, names) if kind == "classification" else task


def _count_classes(split: Split, task: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """A classification with the number of its classes, and their names where each has one."""
    definition = split.manifest.definition
    highest, where = find_highest_class(definition, split.rows, split.assigned), f"{definition.name}: the label"
    classes = task.setdefault("classes", len(names) or max(2, highest + 1))
    if highest >= classes:
        declared = format_count(classes, "class", "classes")
        raise BadDefinition(
            f"{where} {definition.label!r} has class {highest}, but the task has {declared}, numbered from 0: write "
            f"benchmark = {write_inline({'task': {'classes': highest + 1}})}, or omit `classes`"
        )
    if classes < 2 or classes > MOST_CLASSES:
        what = f"{format_count(classes, 'class', 'classes')}{f' ({shorten_list(names)})' if names else ''}"
        raise BadDefinition(
            f"{where} {definition.label!r} has {what}: a classification task needs 2 to {MOST_CLASSES:,}"
        )
    if len(names) == classes:
        return task | {"names": list(names)}
    report_absent_classes(definition, split.rows, split.assigned, list(map(str, range(classes))))
    return task
