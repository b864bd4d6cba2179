"""Labels of the user's own data: which have classes, how the classes are numbered, and each label's task."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import BadDefinition, shorten_list
from ...core.text import format_count, write_inline
from ...splits.schema import Field

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CLASSES = 20_000
MOST_INFERRED, ROWS_A_CLASS = 1_000, 5
"""A text label has classes if it has at most this many distinct texts, each in this many rows on average."""
TASKS = {"int64": "classification", "bool": "classification", "string": "sequence", "float64": "regression"}
"""The task of a label, by its type."""

_FEW, _SOME = 20, 100
"""Integers are taken as classes if there are at most this many, or if they are below the second number and there are
enough rows of each."""
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")


def number_classes(texts: Mapping[str, Collection[str]], labels: Collection[str]) -> dict[str, list[str]]:
    """Return the classes of each field in order; `labels` that share a text share one numbering."""
    groups: list[set[str]] = []
    for field in filter(labels.__contains__, texts):
        sharing = [group for group in groups if not group.isdisjoint(texts[field])]
        groups = [group for group in groups if group not in sharing] + [set(texts[field]).union(*sharing)]
    classes = {}
    for field, its in texts.items():
        shared = next((group for group in groups if field in labels and not group.isdisjoint(its)), its)
        if len(shared) > MOST_CLASSES:
            raise BadDefinition(f"[data] {field!r} has more than {MOST_CLASSES:,} distinct texts: too many for classes")
        # By code point, and integers by value, so that "10" comes after "9".
        classes[field] = sorted(sorted(shared), key=int if all(map(_INTEGER.fullmatch, shared)) else None)
    return classes


@dataclass(frozen=True)
class LabelTask:
    """The task of a label: its `type` (empty if the draft has to give one), for classification the number of `classes`,
    and the reason for this task or for none."""

    type: str
    classes: int = 0
    why: str = ""

    def __str__(self) -> str:
        task = f"a {self.type} task" if self.type else "no task by default"
        of = f" of {format_count(self.classes, 'class', 'classes')}" if self.type == "classification" else ""
        return f"{task}{of}{f' ({self.why})' if self.why else ''}"


def infer_task(label: Field, values: pa.ChunkedArray, names: Collection[str] = (), why: str = "") -> LabelTask:
    """Infer the task of a label. `values`: all its values. `names`: the names of its classes, if known. `why`: why its
    texts are not classes. Integers that are unlikely to be classes (too many, too far apart, too few rows of each) give
    no task."""
    kind = TASKS.get(label.type, "")
    if kind == "classification" and names:
        return LabelTask(kind, len(names))
    if label.type == "int64" and len(values):
        return _infer_task_of_integers(label.name, values)
    if not kind:
        several = '"multilabel"' if label.item == "int64" and len(label.shape) == 1 else ".."
        return LabelTask("", 0, f"a label of type {label.type}: set benchmark = {{ task = {{ type = {several} }} }}")
    return LabelTask(kind, 2 if kind == "classification" else 0, why)


def _infer_task_of_integers(label: str, values: pa.ChunkedArray) -> LabelTask:
    import pyarrow.compute as pc

    ends, number = pc.min_max(values).as_py(), pc.count_distinct(values).as_py()
    low, high = ends["min"], ends["max"]
    numbering = f'classes = ["{label}"] in [data] numbers the values that occur'
    if low < 0:
        return LabelTask("", 0, f"the label {label!r} has the class {low}: classes are integers from 0; {numbering}")
    classes, enough = max(2, high + 1), number * ROWS_A_CLASS <= len(values)
    few = classes <= _SOME and (number <= _FEW or enough)
    if few or (number == classes <= MOST_INFERRED and enough):
        return LabelTask("classification", classes)
    counts = f"{format_count(number, 'different whole number')} in {format_count(len(values), 'row')}, up to {high:,}"
    declared = f"benchmark = {write_inline({'task': {'classes': classes}})} treats them as classes"
    remedies = [declared] if classes <= MOST_CLASSES else []
    remedies += [numbering, f'types = {{ {label} = "float64" }} in [data] treats them as measured values']
    return LabelTask("", 0, f"the label {label!r} has {counts}: {', '.join(remedies)}")


def describe_fields(
    fields: Collection[Field], maps: Mapping[str, object], rows: pa.Table, why: Mapping[str, str]
) -> str:
    """Describe in a line how data were read: each field with its type, or the names of its classes, and its role; and
    the task of each label. why: for labels that stay text, why they are not classes."""
    known = {
        field.name: read_class_names(maps[field.name]) for field in fields if isinstance(maps.get(field.name), list)
    }
    kinds = {name: f"{len(names)} classes: {shorten_list(names)}" for name, names in known.items()}
    columns = ", ".join(f"{field.name} {kinds.get(field.name, field.type)} ({field.role})" for field in fields)
    labels = [field for field in fields if field.role == "label"]
    tasks = {
        label.name: infer_task(label, rows[label.name], known.get(label.name, ()), why.get(label.name, ""))
        for label in labels
    }
    makes = "; ".join(f"{name} makes {task}" for name, task in tasks.items())
    return f"read as {columns}; {makes}; change this by `types`, `classes` or benchmark = {{ task = {{ .. }} }}"


def read_class_names(levels: Any) -> list[str]:
    """Return the class names of a map: their texts, or the first of several texts with the same meaning."""
    return [level if isinstance(level, str) else level[0] for level in levels]
