"""What labels of the user's own are: which have classes, how these are numbered, and the task that each makes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import BadDefinition, shorten_list
from ...core.listings.inline import write_inline
from ...core.listings.plural import format_count
from ...splits.schema import Field
from .type_inference import MOST_CLASSES, MOST_INFERRED, ROWS_A_CLASS

if TYPE_CHECKING:
    import pyarrow as pa

TASKS = {"int64": "classification", "bool": "classification", "string": "sequence", "float64": "regression"}
"""The task that a label makes, by its type."""

_FEW, _SOME = 20, 100
"""Whole numbers are classes without a word where so few occur, or where they are below so many and rows are enough."""
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")


def number_classes(texts: Mapping[str, Collection[str]], labels: Collection[str]) -> dict[str, list[str]]:
    """The classes of each field in their order; `labels` that share a text have the same."""
    groups: list[set[str]] = []
    for field in filter(labels.__contains__, texts):
        sharing = [group for group in groups if not group.isdisjoint(texts[field])]
        groups = [group for group in groups if group not in sharing] + [set(texts[field]).union(*sharing)]
    classes = {}
    for field, its in texts.items():
        shared = next((group for group in groups if field in labels and not group.isdisjoint(its)), its)
        if len(shared) > MOST_CLASSES:
            raise BadDefinition(f"[data] {field!r} has over {MOST_CLASSES:,} different texts: they are no classes")
        classes[field] = _sort_texts(shared)
    return classes


def _sort_texts(texts: Iterable[str]) -> list[str]:
    """Texts by code point; whole numbers by their value, so that "10" comes after "9"."""
    texts = sorted(texts)
    return sorted(texts, key=int) if all(map(_INTEGER.fullmatch, texts)) else texts


@dataclass(frozen=True)
class LabelTask:
    """The task that a label makes: its `type` (empty where the draft has to name one), for a classification
    how many `classes`, and why it is this task, or none."""

    type: str
    classes: int = 0
    why: str = ""

    def __str__(self) -> str:
        task = f"a {self.type} task" if self.type else "no task by itself"
        of = f" of {format_count(self.classes, 'class', 'classes')}" if self.type == "classification" else ""
        return f"{task}{of}{f' ({self.why})' if self.why else ''}"


def infer_task(label: Field, values: pa.ChunkedArray, names: Collection[str] = (), why: str = "") -> LabelTask:
    """The task that a label makes. `values`: all that it has. `names`: what its classes are called, where known.
    `why`: what is known of a text that is no class. Whole numbers that hardly are classes (too many, too far apart, of
    too few rows each) make none."""
    kind = TASKS.get(label.type, "")
    if kind == "classification" and names:
        return LabelTask(kind, len(names))
    if label.type == "int64" and len(values):
        return _infer_task_of_integers(label.name, values)
    if not kind:
        return LabelTask("", 0, f"a label of type {label.type}: say benchmark = {{ task = {{ type = .. }} }}")
    return LabelTask(kind, 2 if kind == "classification" else 0, why)


def _infer_task_of_integers(label: str, values: pa.ChunkedArray) -> LabelTask:
    import pyarrow.compute as pc

    ends, number = pc.min_max(values).as_py(), pc.count_distinct(values).as_py()
    low, high = ends["min"], ends["max"]
    numbering = f'classes = ["{label}"] in [data] numbers those that there are'
    if low < 0:
        return LabelTask(
            "", 0, f"the label {label!r} has the class {low}: classes are whole numbers from 0; {numbering}"
        )
    classes, enough = max(2, high + 1), number * ROWS_A_CLASS <= len(values)
    few = classes <= _SOME and (number <= _FEW or enough)
    if few or (number == classes <= MOST_INFERRED and enough):
        return LabelTask("classification", classes)
    counts = f"{format_count(number, 'different whole number')} in {format_count(len(values), 'row')}, up to {high:,}"
    declared = f"benchmark = {write_inline({'task': {'classes': classes}})} takes them as classes"
    remedies = [declared] if classes <= MOST_CLASSES else []
    remedies += [numbering, f'types = {{ {label} = "float64" }} in [data] as what is measured']
    return LabelTask("", 0, f"the label {label!r} has {counts}: {', '.join(remedies)}")


def describe_fields(
    fields: Collection[Field], maps: Mapping[str, object], rows: pa.Table, why: Mapping[str, str]
) -> str:
    """How data were read, in a line: each field with its type, or the names of its classes, and its role; and the task
    that each label makes. why: of labels that stay text, why they are no classes."""
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
    return f"read as {columns}; {makes}; say others by `types`, `classes` or benchmark = {{ task = {{ .. }} }}"


def read_class_names(levels: Any) -> list[str]:
    """What the classes of a map are called: by their texts, or by the first of several that mean the same."""
    return [level if isinstance(level, str) else level[0] for level in levels]
