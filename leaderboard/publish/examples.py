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
_FORMATS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"))

Cell = tuple[str, str, str]
"""A value of a row: its name, its text, and for an image its data: URL."""


def find_examples(benchmark: Benchmark) -> tuple[dict[str, Any] | None, str]:
    """Return the examples of a benchmark, rows by side with a `note`; or None and the reason."""
    source = find_benchmark_source(benchmark)
    if why := explain_absence(benchmark, source):
        return None, f"No example rows: {why}."
    try:
        return _make_examples(benchmark), ""
    except FarshiftError as error:
        if source is None or not source.needs_network:
            raise
        return None, f"No example rows: {get_first_line(error)}"


def read_row_contents(benchmark: str, ids: Sequence[int]) -> dict[int, list[Cell]]:
    """Return inputs and label of rows of the OOD view, by row id; empty if pages do not show the benchmark's rows."""
    known = load_benchmarks().get(benchmark)
    if known is None or not ids or explain_absence(known, find_benchmark_source(known), many=True):
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


def explain_absence(benchmark: Benchmark, source: Source | None, many: bool = False) -> str:
    """Return why a page does not show rows of a benchmark; empty if it does. many: whether also of generated sources
    with many rows, which a comparison has generated anyway."""
    if source is None:
        return "this version of Farshift does not know the data"
    definition, split = source.definition, benchmark.manifest.definition
    if not source.needs_network:
        if source.extra:
            return f"generating them needs an optional package (farshift[{source.extra}])"
        return f"the source has over {MOST_GENERATED:,}" if definition.rows > MOST_GENERATED and not many else ""
    licences = [licence for licence in (definition.licence, split.licence) if licence] or ["unknown"]
    if definition.accept or not all(map(is_redistributable, licences)):
        return f"the licence of the data does not permit redistribution ({licences[0]})"
    if definition.rows > MOST_READ or not benchmark.manifest.frozen:
        return f"they are shown only for pinned published data of at most {MOST_READ:,} rows"
    if not is_on_disk(source):
        load = f"farshift splits pull {benchmark.definition.split}"
        return f"the data were not on the disk where this page was made ({load})"
    return ""


def is_redistributable(licence: str) -> bool:
    """Return whether a licence, as stated in a definition, lets a page show rows: it names a known free licence and no
    exception for a part of the data. False if in doubt."""
    return bool(_FREE.match(licence)) and not _NOT.search(licence)


def is_on_disk(source: Source) -> bool:
    """Return whether a source's rows are on this disk; making a page downloads nothing."""
    return bool(source.definition.digest) and source.cached_at.is_file()


def _make_examples(benchmark: Benchmark) -> dict[str, Any]:
    train = benchmark.part("train")
    if benchmark.kind == "corrupted-label":
        wrong, right = np.flatnonzero(train.corrupted).tolist(), np.flatnonzero(~train.corrupted).tolist()
        note = "Training rows, some of them with a wrong label, and test rows, whose labels are correct."
        test, side, chosen = benchmark.view("id")[0], "Test", [*wrong[: ROWS - 1], *right[:1]]
    else:
        note = "Rows of the shifted test part, and of the training part."
        test, side, chosen = benchmark.view("ood")[0], "Test (OOD)", list(range(min(ROWS, len(train))))
    sides = {
        "Training": [_make_row(benchmark, train, k) for k in chosen],
        side: [_make_row(benchmark, test, k) for k in range(min(ROWS, len(test)))],
    }
    return {"note": note, "sides": sides}


def _make_row(benchmark: Benchmark, part: Part, at: int) -> list[Cell]:
    """Return a row of a part as a page shows it, with its label's name."""
    row, task = part[at], benchmark.definition.task
    types = {field.name: field.type for field in part.schema.fields}
    cells = [_make_cell(name, row[name], types[name]) for name in task.inputs[:CELLS]]
    if len(task.inputs) > CELLS:
        cells.append(("and", format_count(len(task.inputs) - CELLS, "more input"), ""))
    names = task.names or benchmark.manifest.definition.label_names

    def format_label(value: Any) -> str:
        known = isinstance(value, int) and 0 <= value < len(names)
        return _format_value(f"{value} ({names[value]})" if known else value)

    cells.append(("label" if task.label == "label" else f"{task.label} (label)", format_label(row[task.label]), ""))
    if part.corrupted[at]:
        cells.append(("true label", format_label(part.select(np.array([at])).true_labels().tolist()[0]), ""))
    if "severity" in part.row_metadata:
        cells.append(("severity", f"{float(part.row_metadata['severity'][at]):g}", ""))
    return cells


def _make_cell(name: str, value: Any, type_: str) -> Cell:
    if type_.startswith("uint8[") and type_.count(",") in (1, 2):
        shape = tuple(int(side) for side in type_[6:-1].split(","))
        return name, f"{name}: an image of {shape[0]} x {shape[1]}", make_data_uri(encode_png(value, shape))
    if isinstance(value, bytes):
        what = {"image": "an image", "audio": "a recording"}.get(type_, "content")
        return name, f"{name}: {what} of {len(value):,} bytes", make_data_uri(value) if type_ == "image" else ""
    return name, _format_value(value), ""


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        text = ", ".join(f"{item:.3g}" if isinstance(item, float) else str(item) for item in value[:CELLS])
        return text + (", .." if len(value) > CELLS else "")
    text = f"{value:.4g}" if isinstance(value, float) else escape_untrusted(str(value), LINES)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def encode_png(values: Sequence[int], shape: tuple[int, ...]) -> bytes:
    """Encode an image of (height, width) or (height, width, 1 or 3) bytes, in C order, as PNG (ISO/IEC 15948)."""
    pixels = np.asarray(values, np.uint8).reshape(shape)
    if 0 < int(pixels.max(initial=0)) < DARK:  # few grey levels, such as scans with values 0 to 16
        pixels = pixels * np.uint8(255 // int(pixels.max()))
    height, width, colour = shape[0], shape[1], 2 if shape[2:] == (3,) else 0
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    head = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return _FORMATS[0][0] + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in ((b"IHDR", head), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    )


def make_data_uri(content: bytes) -> str:
    """Return a data: URL of an encoded image: PNG, JPEG or GIF by its first bytes, of at most `MOST_ENCODED` bytes;
    empty for any other."""
    kind = next((name for head, name in _FORMATS if content.startswith(head)), "")
    if not kind or len(content) > MOST_ENCODED:
        return ""
    return f"data:image/{kind};base64,{b64encode(content).decode()}"
