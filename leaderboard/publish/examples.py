"""Example rows of training and test, side by side.

Rows of generated data are shown on every machine. Rows of published data are shown where their licence permits it and
they are on the disk (example_permissions.py): nothing is downloaded for a page.

The rows are the first of their part, which is stored by row id (a digest, so that the order tells nothing of the rows).
Beside each test row stands the training row that is nearest to it of the first `SEARCHED`; what differs is marked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from html import escape
from typing import Any

import numpy as np

from ...benchmarks.benchmark import Benchmark, find_benchmark
from ...core.errors import FarshiftError, get_first_line
from ...core.listings.plural import format_count
from ...core.listings.untrusted_text import LINES, escape_untrusted
from ...loaders.part import Part
from .example_permissions import explain_refusal, find_benchmark_source, is_on_disk
from .figures.png import make_data_uri, make_encoded_uri

ROWS, SEARCHED = 3, 400
_ENCODED = {"image": "a picture", "audio": "a recording", "text": "content"}
LONGEST, CELLS = 240, 8
"""Characters of a text that are shown, and cells of a row."""


@dataclass(frozen=True)
class ExampleCell:
    """A value of a row: its name; in words, as HTML with what differs marked; of a picture its data: address."""

    name: str
    words: str
    html: str
    picture: str = ""


@dataclass(frozen=True)
class ExampleRow:
    cells: tuple[ExampleCell, ...]


@dataclass(frozen=True)
class Side:
    title: str
    rows: tuple[ExampleRow, ...]


@dataclass(frozen=True)
class Examples:
    """Two sides of rows, and what they are, in a sentence."""

    note: str
    sides: tuple[Side, Side]


def find_examples(benchmark: Benchmark) -> tuple[Examples | None, str]:
    """The examples of a benchmark, or None and why there are none."""
    source = find_benchmark_source(benchmark)
    if source is None:
        return None, "No example rows: this version does not know the data."
    if why := explain_refusal(benchmark, source):
        return None, why
    if source.needs_network and not is_on_disk(source):
        load = f"farshift splits pull {benchmark.definition.split}"
        return None, f"No example rows: the data were not on the disk where this page was made ({load})."
    try:
        return _make_examples(benchmark.name, benchmark.manifest.identity), ""
    except FarshiftError as error:
        if not source.needs_network:
            raise
        return None, f"No example rows: {get_first_line(error)}"


@cache
def _make_examples(name: str, identity: str) -> Examples:
    """The examples of a benchmark by name; the identity of its split is a part of what they depend on."""
    benchmark = find_benchmark(name)
    if benchmark.kind == "corrupted-label":
        return _make_label_examples(benchmark)
    return _make_nearest_examples(benchmark)


def _make_label_examples(benchmark: Benchmark) -> Examples:
    train, (test, _) = benchmark.part("train"), benchmark.view("id")
    wrong, right = train.select(train.corrupted), train.select(~train.corrupted)
    chosen = [(part, k) for part, count in ((wrong, ROWS - 1), (right, 1)) for k in range(min(count, len(part)))]
    return Examples(
        "Training rows, some of them with a wrong label, and test rows, whose labels are right.",
        (
            Side("Training", tuple(make_example_row(benchmark, part, k) for part, k in chosen)),
            Side("Test", tuple(make_example_row(benchmark, test, k) for k in range(min(ROWS, len(test))))),
        ),
    )


def _make_nearest_examples(benchmark: Benchmark) -> Examples:
    train, (test, _) = benchmark.part("train"), benchmark.view("ood")
    tests = test[:ROWS]
    pool = train[:SEARCHED]
    names = [name for name in benchmark.definition.task.inputs if isinstance(pool[0][name], str)]
    chosen = []
    for k, row in enumerate(tests):
        near = max(range(len(pool)), key=lambda at: (_compute_word_overlap(pool[at], row, names), -at)) if names else k
        chosen.append((near, k))
    training_rows = [make_example_row(benchmark, train, near, tests[k] if names else None) for near, k in chosen]
    test_rows = [make_example_row(benchmark, test, k, pool[near] if names else None) for near, k in chosen]
    caption = "Rows of the shifted test"
    caption += (
        ", each beside a training row that is like it; what differs is underlined." if names else ", and of training."
    )
    return Examples(caption, (Side("Training", tuple(training_rows)), Side("Test (OOD)", tuple(test_rows))))


def _compute_word_overlap(left: Mapping[str, Any], right: Mapping[str, Any], names: Sequence[str]) -> float:
    """The share of words that the texts of two rows have in common (Jaccard)."""
    left_words, right_words = ({word for name in names for word in row[name].split()} for row in (left, right))
    return len(left_words & right_words) / (len(left_words | right_words) or 1)


def make_example_row(benchmark: Benchmark, part: Part, at: int, beside: Mapping[str, Any] | None = None) -> ExampleRow:
    """A row of a part as a page shows it, its label in words. beside: a row that its texts are compared with."""
    """A row of a part as it is shown; `beside`: the row that it stands beside."""
    row, task = part[at], benchmark.definition.task
    shapes = {field.name: field.type for field in part.schema.fields}
    cells = [_make_cell(name, row[name], shapes[name], beside) for name in task.inputs[:CELLS]]
    if len(task.inputs) > CELLS:
        cells.append(ExampleCell("and", "", format_count(len(task.inputs) - CELLS, "more input")))
    class_names = task.names or benchmark.manifest.definition.label_names
    label = "label" if task.label == "label" else f"{task.label} (label)"
    other_label = None if beside is None else {label: _add_class_name(beside[task.label], class_names)}
    cells.append(_make_cell(label, _add_class_name(row[task.label], class_names), "string", other_label))
    if part.corrupted[at]:
        true = part.select(np.array([at])).true_labels().tolist()[0]
        cells.append(
            ExampleCell("true label", "", f"<mark>{escape(_format_value(_add_class_name(true, class_names)))}</mark>")
        )
    if "severity" in part.row_metadata:
        cells.append(ExampleCell("severity", "", f"{float(part.row_metadata['severity'][at]):g}"))
    return ExampleRow(tuple(cells))


def _add_class_name(value: Any, names: Sequence[str]) -> Any:
    fits = isinstance(value, int) and 0 <= value < len(names)
    return f"{value} ({names[value]})" if fits else value


def _make_cell(name: str, value: Any, type_: str, beside: Mapping[str, Any] | None) -> ExampleCell:
    if type_.startswith("uint8[") and type_.count(",") in (1, 2):
        shape = tuple(int(side) for side in type_[6:-1].split(","))
        return ExampleCell(name, f"{name}: a picture of {shape[0]} x {shape[1]}", "", make_data_uri(value, shape))
    if isinstance(value, bytes):
        what = type_ if type_ in ("image", "audio") else "text"
        text = f"{name}: {_ENCODED[what]} of {len(value):,} bytes"
        return ExampleCell(name, text, escape(text), make_encoded_uri(value) if what == "image" else "")
    words = _format_value(value)
    other = _format_value(beside[name]) if beside is not None and name in beside and isinstance(value, str) else None
    return ExampleCell(name, words, _mark_differences(words, other))


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        text = ", ".join(f"{item:.3g}" if isinstance(item, float) else str(item) for item in value[:CELLS])
        return text + (", .." if len(value) > CELLS else "")
    text = f"{value:.4g}" if isinstance(value, float) else escape_untrusted(str(value), LINES)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _mark_differences(text: str, other: str | None) -> str:
    """A text as HTML, the words that the other one has not in their place marked."""
    if other is None:
        return escape(text)
    words, other_words = text.split(" "), other.split(" ")
    pieces = []
    for what, first, last, _, _ in SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes():
        piece = escape(" ".join(words[first:last]))
        if piece:
            pieces.append(piece if what == "equal" else f"<mark>{piece}</mark>")
    return " ".join(pieces)
