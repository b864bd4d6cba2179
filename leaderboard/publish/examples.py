"""Rows of data on pages: examples of training and test side by side, and the rows on which entries differ.

Rows of generated data are always shown. Rows of published data are shown if their licence permits it and they are on
the disk of the machine that makes the page: nothing is downloaded for a page.

Examples are the first rows of their part, which is sorted by row id (a digest, so the order is independent of the
content).
"""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...core.errors import FarshiftError, get_first_line
from ...core.text import LINES, escape_untrusted, format_count
from ...loaders.acquire.source import Source, find_source
from ...loaders.part import Part

MOST_GENERATED, MOST_READ = 50_000, 500_000
"""Maximum number of rows of sources that are generated, and that are read from the disk, for a page."""

ROWS = 3
"""Number of rows of each side."""

LONGEST, CELLS = 240, 8
"""Maximum numbers of characters of a text, and of cells of a row, that are shown."""

DARK = 64
"""An image whose brightest value is below this one is brightened."""

MOST_ENCODED = 48 << 10
"""Maximum size in bytes of an encoded image on a page."""

_FREE = re.compile(
    r"(CC0|CC BY(-SA)? \d|MIT\b|Apache-2\.0|BSD|PDDL|CDLA-Permissive|AFL-3|Public domain|Free for any purpose)"
)
_NOT = re.compile(
    r"-N[CD]\b|non-commercial|research|restricted|permission|owners|annotations|labels|stimuli|no stated licence|"
    r"(pictures|images|corpus|texts|data) (state|has|have|as|of)\b|states? none\b|none stated|test set only",
    re.IGNORECASE,
)
_ENCODED = {"image": "an image", "audio": "a recording"}
_FORMATS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))


@dataclass(frozen=True)
class ExampleCell:
    """A value of a row: its name, its text, and for an image its data: URL."""

    name: str
    text: str
    picture: str = ""


ExampleRow = tuple[ExampleCell, ...]


@dataclass(frozen=True)
class Examples:
    """Rows of training and test with a caption."""

    note: str
    sides: dict[str, Sequence[ExampleRow]]


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
        return _make_examples(benchmark), ""
    except FarshiftError as error:
        if not source.needs_network:
            raise
        return None, f"No example rows: {get_first_line(error)}"


def read_row_contents(benchmark: str, ids: Sequence[int]) -> dict[int, ExampleRow]:
    """Return inputs and label of rows of the OOD view, by row id; empty if pages do not show the benchmark's rows."""
    known = load_benchmarks().get(benchmark)
    source = None if known is None else find_benchmark_source(known)
    if known is None or source is None or not ids:
        return {}
    if (not is_on_disk(source) or explain_refusal(known, source)) if source.needs_network else source.extra:
        return {}
    part, _ = known.view("ood")
    rows = part.select(np.searchsorted(part.row_ids, np.array(ids, np.uint64)))
    return {row_id: _make_row(known, rows, at) for at, row_id in enumerate(ids)}


def find_benchmark_source(benchmark: Benchmark) -> Source | None:
    """Return the source of a benchmark's rows; None if this version does not know it."""
    try:
        return find_source(benchmark.manifest.definition.source.name)
    except FarshiftError:
        return None


def format_credit(benchmark: Benchmark) -> str:
    """Return the attribution of published rows on a page; empty for generated rows."""
    source = find_benchmark_source(benchmark)
    definition = None if source is None or not source.needs_network else source.definition
    return "" if definition is None else f"Rows of {definition.title}; {definition.licence}. {definition.citation}"


def explain_refusal(benchmark: Benchmark, source: Source) -> str:
    """Return why pages never show rows of a benchmark; empty if they may."""
    definition, split = source.definition, benchmark.manifest.definition
    if not source.needs_network:
        if source.extra:
            return f"No example rows: generating them needs an optional package (farshift[{source.extra}])."
        if definition.rows > MOST_GENERATED:
            return f"No example rows: they are shown only for generated sources of at most {MOST_GENERATED:,} rows."
        return ""
    licences = [licence for licence in (definition.licence, split.licence) if licence]
    if definition.accept or not licences or not all(map(is_redistributable, licences)):
        if not licences or licences[0] == "unknown":
            return "No example rows: the licence of the data is unknown (set `licence` in the `[data]` of its draft)."
        return f"No example rows: the licence of the data does not permit redistribution ({licences[0]})."
    if definition.rows > MOST_READ or not benchmark.manifest.frozen:
        return f"No example rows: they are shown only for pinned published data of at most {MOST_READ:,} rows."
    return ""


def is_redistributable(licence: str) -> bool:
    """Return whether a licence, as stated in a definition, lets a page show rows: it names a known free licence and no
    exception for a part of the data. False if in doubt."""
    return bool(_FREE.match(licence)) and not _NOT.search(licence)


def is_on_disk(source: Source) -> bool:
    """Return whether a source's rows are on this disk; making a page downloads nothing."""
    return bool(source.definition.digest) and source.cached_at.is_file()


def _make_examples(benchmark: Benchmark) -> Examples:
    train = benchmark.part("train")
    if benchmark.kind == "corrupted-label":
        wrong, right = np.flatnonzero(train.corrupted).tolist(), np.flatnonzero(~train.corrupted).tolist()
        note = "Training rows, some of them with a wrong label, and test rows, whose labels are correct."
        test, side, chosen = benchmark.view("id")[0], "Test", [*wrong[: ROWS - 1], *right[:1]]
    else:
        note = "Rows of the shifted test part, and of the training part."
        test, side, chosen = benchmark.view("ood")[0], "Test (OOD)", list(range(min(ROWS, len(train))))
    return Examples(
        note,
        {
            "Training": [_make_row(benchmark, train, k) for k in chosen],
            side: [_make_row(benchmark, test, k) for k in range(min(ROWS, len(test)))],
        },
    )


def _make_row(benchmark: Benchmark, part: Part, at: int) -> ExampleRow:
    """Return a row of a part as a page shows it, with its label's name."""
    row, task = part[at], benchmark.definition.task
    types = {field.name: field.type for field in part.schema.fields}
    cells = [_make_cell(name, row[name], types[name]) for name in task.inputs[:CELLS]]
    if len(task.inputs) > CELLS:
        cells.append(ExampleCell("and", format_count(len(task.inputs) - CELLS, "more input")))
    class_names = task.names or benchmark.manifest.definition.label_names
    label = "label" if task.label == "label" else f"{task.label} (label)"
    cells.append(ExampleCell(label, _format_value(_add_class_name(row[task.label], class_names))))
    if part.corrupted[at]:
        true = part.select(np.array([at])).true_labels().tolist()[0]
        cells.append(ExampleCell("true label", _format_value(_add_class_name(true, class_names))))
    if "severity" in part.row_metadata:
        cells.append(ExampleCell("severity", f"{float(part.row_metadata['severity'][at]):g}"))
    return tuple(cells)


def _add_class_name(value: Any, names: Sequence[str]) -> Any:
    fits = isinstance(value, int) and 0 <= value < len(names)
    return f"{value} ({names[value]})" if fits else value


def _make_cell(name: str, value: Any, type_: str) -> ExampleCell:
    if type_.startswith("uint8[") and type_.count(",") in (1, 2):
        shape = tuple(int(side) for side in type_[6:-1].split(","))
        return ExampleCell(name, f"{name}: an image of {shape[0]} x {shape[1]}", make_data_uri(value, shape))
    if isinstance(value, bytes):
        text = f"{name}: {_ENCODED.get(type_, 'content')} of {len(value):,} bytes"
        return ExampleCell(name, text, make_encoded_uri(value) if type_ == "image" else "")
    return ExampleCell(name, _format_value(value))


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        text = ", ".join(f"{item:.3g}" if isinstance(item, float) else str(item) for item in value[:CELLS])
        return text + (", .." if len(value) > CELLS else "")
    text = f"{value:.4g}" if isinstance(value, float) else escape_untrusted(str(value), LINES)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def make_encoded_uri(content: bytes) -> str:
    """Return a data: URL of an encoded image: PNG, JPEG or GIF by its first bytes, of at most `MOST_ENCODED` bytes;
    empty for any other."""
    known = next((name for head, name in _FORMATS if content.startswith(head)), "")
    return _to_uri(content, known) if known and len(content) <= MOST_ENCODED else ""


def make_data_uri(values: Sequence[int], shape: tuple[int, ...]) -> str:
    """Return a data: URL of an image of (height, width) or (height, width, 1 or 3) bytes, in C order, as a PNG file
    (ISO/IEC 15948)."""
    pixels = np.asarray(values, np.uint8).reshape(shape)
    if 0 < int(pixels.max(initial=0)) < DARK:  # few grey levels, such as scans with values 0 to 16
        pixels = pixels * np.uint8(255 // int(pixels.max()))
    height, width, colour = shape[0], shape[1], 2 if shape[2:] == (3,) else 0
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    content = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    )
    return _to_uri(_FORMATS[0][0] + content, "png")


def _to_uri(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{b64encode(content).decode()}"
