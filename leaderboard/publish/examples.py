"""Example rows of training and test, side by side.

Rows of generated data are always shown. Rows of published data are shown if their licence permits it and they are on
the disk (example_permissions.py): nothing is downloaded for a page.

The rows are the first of their part, which is sorted by row id (a digest, so the order is independent of the content).
Next to each test row is its nearest training row among the first `SEARCHED`, with the differences marked.
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
_ENCODED = {"image": "an image", "audio": "a recording", "text": "content"}
LONGEST, CELLS = 240, 8
"""Maximum numbers of characters of a text, and of cells of a row, that are shown."""


@dataclass(frozen=True)
class ExampleCell:
    """A value of a row: its name, its text, its HTML with differences marked, and for an image its data: URL."""

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
    """Two sides of rows with a caption."""

    note: str
    sides: tuple[Side, Side]


def find_examples(benchmark: Benchmark) -> tuple[Examples | None, str]:
    """Return the examples of a benchmark, or None and the reason."""
    source = find_benchmark_source(benchmark)
    if source is None:
        return None, "No example rows: this version of Farshift does not know the data."
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
    """Return the examples of a benchmark by name. The split's identity is an argument because it is part of the cache
    key."""
    benchmark = find_benchmark(name)
    if benchmark.kind == "corrupted-label":
        return _make_label_examples(benchmark)
    return _make_nearest_examples(benchmark)


def _make_label_examples(benchmark: Benchmark) -> Examples:
    train, (test, _) = benchmark.part("train"), benchmark.view("id")
    wrong, right = train.select(train.corrupted), train.select(~train.corrupted)
    chosen = [(part, k) for part, count in ((wrong, ROWS - 1), (right, 1)) for k in range(min(count, len(part)))]
    return Examples(
        "Training rows, some of them with a wrong label, and test rows, whose labels are correct.",
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
    caption = "Rows of the shifted test part"
    caption += (
        ", each next to a similar training row; differences are underlined." if names else ", and of the training part."
    )
    return Examples(caption, (Side("Training", tuple(training_rows)), Side("Test (OOD)", tuple(test_rows))))


def _compute_word_overlap(left: Mapping[str, Any], right: Mapping[str, Any], names: Sequence[str]) -> float:
    """Return the Jaccard similarity of the words in the texts of two rows."""
    left_words, right_words = ({word for name in names for word in row[name].split()} for row in (left, right))
    return len(left_words & right_words) / (len(left_words | right_words) or 1)


def make_example_row(benchmark: Benchmark, part: Part, at: int, beside: Mapping[str, Any] | None = None) -> ExampleRow:
    """Return a row of a part as a page shows it, with its label's name. beside: a row to compare its texts with."""
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
        return ExampleCell(name, f"{name}: an image of {shape[0]} x {shape[1]}", "", make_data_uri(value, shape))
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
    """Return a text as HTML, with the words that differ from the other text marked."""
    if other is None:
        return escape(text)
    words, other_words = text.split(" "), other.split(" ")
    pieces = []
    for what, first, last, _, _ in SequenceMatcher(None, words, other_words, autojunk=False).get_opcodes():
        piece = escape(" ".join(words[first:last]))
        if piece:
            pieces.append(piece if what == "equal" else f"<mark>{piece}</mark>")
    return " ".join(pieces)
