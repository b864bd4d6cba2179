"""What labels of the user's own are: which have classes, how these are numbered, and the task that each makes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.errors import BadDefinition, some_of
from ...core.listings.inline import inline
from ...core.listings.plural import counted
from ...splits.schema import Field
from .guess import MOST_CLASSES, MOST_INFERRED, ROWS_A_CLASS, Guess

if TYPE_CHECKING:
    import pyarrow as pa

    from .own_data import Data

TASKS = {"int64": "classification", "bool": "classification", "string": "sequence", "float64": "regression"}
"""The task that a label makes, by its type."""

_FEW, _SOME = 20, 100
"""Whole numbers are classes without a word where so few occur, or where they are below so many and rows are enough."""
_WHOLE = re.compile(r"-?(0|[1-9][0-9]*)")


def class_maps(data: Data, guesses: Mapping[str, Guess], kinds: Mapping[str, str]) -> dict[str, list[str]]:
    """The classes of each field that has some, in their order: of those that `classes` names, and of labels of text
    whose texts are few and each that of several rows. Labels that share a text share one numbering, so that a rule may
    compare them. kinds: the type that each field has otherwise."""
    texts: dict[str, Collection[str]] = {}
    for field, (_, role) in data.columns().items():
        if field not in guesses or field in data.types:
            continue
        guess = guesses[field]
        inferred = role == "label" and kinds[field] == "string" and not guess.why_no_classes
        if field in data.classes or inferred:
            texts[field] = guess.texts
    labels = [field for field, (_, role) in data.columns().items() if role == "label"]
    return number_classes(texts, labels)


def why_no_classes(data: Data, guesses: Mapping[str, Guess], kinds: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The labels that stay text without being told to, each with why its texts are hardly classes."""
    labels = [field for field, (_, role) in data.columns().items() if role == "label" and field in guesses]
    texts = [field for field in labels if kinds[field] == "string" and field not in (*data.classes, *data.types)]
    return tuple(
        (field, f'{why}: classes = ["{field}"] makes classes of them')
        for field in texts
        if (why := guesses[field].why_no_classes)
    )


def number_classes(texts: Mapping[str, Collection[str]], labels: Collection[str]) -> dict[str, list[str]]:
    """The classes of each field in their order; `labels` that share a text have the same."""
    alike: list[set[str]] = []
    for field in filter(labels.__contains__, texts):
        sharing = [one for one in alike if not one.isdisjoint(texts[field])]
        alike = [one for one in alike if one not in sharing] + [set(texts[field]).union(*sharing)]
    found = {}
    for field, its in texts.items():
        shared = next((one for one in alike if field in labels and not one.isdisjoint(its)), its)
        if len(shared) > MOST_CLASSES:
            raise BadDefinition(f"[data] {field!r} has over {MOST_CLASSES:,} different texts: they are no classes")
        found[field] = _ordered(shared)
    return found


def _ordered(texts: Iterable[str]) -> list[str]:
    """Texts by code point; whole numbers by their value, so that "10" comes after "9"."""
    texts = sorted(texts)
    return sorted(texts, key=int) if all(map(_WHOLE.fullmatch, texts)) else texts


@dataclass(frozen=True)
class LabelTask:
    """The task that a label makes: its `type` (empty where it makes none without being told to), for a classification
    how many `classes`, and why it is this task, or none."""

    type: str
    classes: int = 0
    why: str = ""

    def __str__(self) -> str:
        of = f" of {counted(self.classes, 'class', 'classes')}" if self.type == "classification" else ""
        return (
            f"{f'a {self.type} task' if self.type else 'no task by itself'}{of}{f' ({self.why})' if self.why else ''}"
        )


def task_of(label: Field, values: pa.ChunkedArray, names: Collection[str] = (), why: str = "") -> LabelTask:
    """The task that a label makes. `values`: all that it has. `names`: what its classes are called, where known.
    `why`: what is known of a text that is no class. Whole numbers that hardly are classes (too many, too far apart, of
    too few rows each) make none."""
    kind = TASKS.get(label.type, "")
    if kind == "classification" and names:
        return LabelTask(kind, len(names))
    if label.type == "int64" and len(values):
        return _of_whole_numbers(label.name, values)
    if not kind:
        return LabelTask("", 0, f"a label of type {label.type}: say benchmark = {{ task = {{ type = .. }} }}")
    return LabelTask(kind, 2 if kind == "classification" else 0, why)


def _of_whole_numbers(label: str, values: pa.ChunkedArray) -> LabelTask:
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
    counts = f"{counted(number, 'different whole number')} in {counted(len(values), 'row')}, up to {high:,}"
    said = [f"benchmark = {inline({'task': {'classes': classes}})} takes them as classes"] * (classes <= MOST_CLASSES)
    said += [numbering, f'types = {{ {label} = "float64" }} in [data] as what is measured']
    return LabelTask("", 0, f"the label {label!r} has {counts}: {', '.join(said)}")


def describe(
    fields: Collection[Field], maps: Mapping[str, object], rows: pa.Table, why: Mapping[str, str] | None = None
) -> str:
    """How data were read, in a line: each field with its type, or the names of its classes, and its role; and the task
    that each label makes. why: of labels that stay text, why they are no classes."""
    known = {field.name: class_names(maps[field.name]) for field in fields if isinstance(maps.get(field.name), list)}
    kinds = {name: f"{len(names)} classes: {some_of(names)}" for name, names in known.items()}
    told = ", ".join(f"{one.name} {kinds.get(one.name, one.type)} ({one.role})" for one in fields)
    tasks = [
        f"{one.name} makes {task_of(one, rows[one.name], known.get(one.name, ()), (why or {}).get(one.name, ''))}"
        for one in fields
        if one.role == "label"
    ]
    return f"read as {told}; {'; '.join(tasks)}; say others by `types`, `classes` or benchmark = {{ task = {{ .. }} }}"


def class_names(levels: Any) -> list[str]:
    """What the classes of a map are called: by their texts, or by the first of several that mean the same."""
    return [level if isinstance(level, str) else level[0] for level in levels]
