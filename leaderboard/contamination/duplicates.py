"""Do a benchmark's test rows occur in given training data? Exact and near duplicates, by fingerprints.

Exact: the row's inputs occur field by field (Parquet columns with the inputs' names: by row id), or its input text
equals one of the texts, ignoring case and spaces. Near: a text is similar to the row's at 0.8 or more
(splits/measures/near_duplicates.py). Texts from one template are similar even without contamination, so the record also
has the number of rows that are near duplicates of the benchmark's own training rows.

Training texts are local: a Parquet file, a text file (one text a line), JSON lines, or a folder of these. Nothing is
sent to another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import Benchmark
from ...core.documents import parse_json
from ...core.errors import BadData, FarshiftError, get_first_line
from ...loaders.part import Part
from ...splits.measures.near_duplicates import make_shingles
from ...splits.rows import compute_first_ids

if TYPE_CHECKING:
    import pyarrow as pa


_VIEWS = ("id", "ood")
_NAMED = 5
"""Maximum number of row ids of duplicates that are listed."""

Flags = NDArray[np.bool_]


def count_duplicate_rows(corpus: Corpus, benchmark: Benchmark) -> dict[str, Any]:
    """Count the rows of each test view with exact or near duplicates in the corpus, list the first few by row id, and
    count those with near duplicates in the benchmark's own training rows. Raises `FarshiftError` if the benchmark's
    inputs are not text and no Parquet file has columns of their names."""
    views = {name: benchmark.view(name)[0] for name in _VIEWS}
    texts = {name: join_row_texts(part, benchmark) for name, part in views.items()}
    exact = {name: np.zeros(len(part), bool) for name, part in views.items()}
    near = {name: np.zeros(len(part), bool) for name, part in views.items()}
    rows = _mark_column_matches(corpus, benchmark, views, exact)
    if not rows and not all(texts.values()):
        needed = ", ".join(benchmark.task.inputs)
        raise FarshiftError(f"{benchmark.name} is not a text task: give Parquet with its inputs as columns ({needed})")
    count = 0
    for piece in corpus.pieces():
        count += len(piece)
        known = {compute_fingerprint(text) for text in piece}
        for name, view_texts in texts.items():
            exact[name] |= (
                np.array([compute_fingerprint(text) in known for text in view_texts], bool) if view_texts else False
            )
            near[name] |= _find_resembling(view_texts, piece) if view_texts else False
    base = {name: _count_training_matches(benchmark, view_texts) for name, view_texts in texts.items()}
    counts = {name: _make_counts(views[name], exact[name], near[name], base[name]) for name in _VIEWS}
    return {"probe": "duplicates", "benchmark": benchmark.name, "texts": count, "rows": rows, "views": counts}


def join_row_texts(part: Part, benchmark: Benchmark) -> list[str]:
    """The text of each row's inputs, fields joined by spaces; empty if an input is not text."""
    schema = benchmark.split.source.schema
    if any(schema[name].type != "string" for name in benchmark.task.inputs):
        return []
    columns = part.numpy(benchmark.task.inputs)
    fields = (columns[name].tolist() for name in benchmark.task.inputs)
    return [" ".join(values) for values in zip(*fields, strict=True)]


def compute_fingerprint(text: str) -> bytes:
    """A 16-byte digest of a text, ignoring case and spaces."""
    return blake2b(" ".join(text.casefold().split()).encode("utf-8", "replace"), digest_size=16).digest()


def _mark_column_matches(corpus: Corpus, benchmark: Benchmark, views: dict[str, Part], exact: dict[str, Flags]) -> int:
    """Mark the rows whose inputs occur in columns of their names; return how many corpus rows were compared."""
    schema = benchmark.split.source.schema
    fields = schema.of_role("input")
    compared = 0
    for table in corpus.tables(tuple(field.name for field in fields)):
        try:
            ids = compute_first_ids(table.cast(_to_arrow(fields)), schema)
        except (ValueError, BadData):  # columns of the same names with other content
            continue
        compared += len(ids)
        for name, part in views.items():
            exact[name] |= np.isin(compute_first_ids(part.arrow([field.name for field in fields]), schema), ids)
    return compared


def _to_arrow(fields: Any) -> Any:
    import pyarrow as pa

    return pa.schema([(field.name, field.arrow()) for field in fields])


def _find_resembling(rows: list[str], texts: list[str]) -> Flags:
    """Whether each row is a near duplicate of one of the texts."""
    import pyarrow as pa

    both = make_shingles(pa.chunked_array([pa.array([*rows, *texts], pa.large_string())]))
    return both.resembling(np.arange(len(rows)), np.arange(len(rows), len(rows) + len(texts)))


def _count_training_matches(benchmark: Benchmark, rows: list[str]) -> int:
    """Count the rows that are near duplicates of the benchmark's own training rows (the first 100,000)."""
    if not rows:
        return 0
    train = benchmark.part("train")
    return int(_find_resembling(rows, join_row_texts(train.select(np.arange(min(len(train), PIECE))), benchmark)).sum())


def _make_counts(part: Part, exact: Flags, near: Flags, base: int) -> dict[str, Any]:
    matches = exact | near
    return {
        "rows": len(part),
        "exact": int(exact.sum()),
        "near": int((near & ~exact).sum()),
        "near_own_training": base,
        "first": [f"{row:016x}" for row in part.row_ids[matches][:_NAMED].tolist()],
    }


_LINES = (".txt", ".md", ".csv", ".tsv", ".text")
_JSON = (".jsonl", ".ndjson")
_PARQUET = (".parquet",)
PIECE = 100_000
"""Number of texts in memory at once."""


@dataclass(frozen=True)
class Corpus:
    """Files of training texts, sorted."""

    files: tuple[Path, ...]

    @classmethod
    def at(cls, location: Path | str) -> Corpus:
        """The texts at a path; `FarshiftError` if there are none that can be read."""
        location = Path(location)
        known = (*_LINES, *_JSON, *_PARQUET)
        if location.is_dir():
            files = sorted(path for path in location.rglob("*") if path.is_file() and path.suffix.lower() in known)
        else:
            files = [location] if location.is_file() and location.suffix.lower() in known else []
        if not files:
            raise FarshiftError(
                f"{location}: no texts found; give a folder, or a file that ends with {', '.join(known)}"
            )
        return cls(tuple(files))

    def pieces(self) -> Iterator[list[str]]:
        """Yield the texts in lists of at most 100,000: every line, every string in a JSON line, every value of a text
        column."""
        texts = (text for path in self.files for text in _iterate_texts(path))
        while piece := list(islice(texts, PIECE)):
            yield piece

    def tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the given columns of every Parquet file that has all of them, in pieces."""
        for path in self.files:
            if path.suffix.lower() in _PARQUET:
                yield from _read_parquet(path, lambda schema: columns if set(columns) <= set(schema.names) else ())


def _read_parquet(path: Path, choose: Callable[[pa.Schema], Sequence[str]]) -> Iterator[pa.Table]:
    """Yield the chosen columns of a Parquet file in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        if names := choose(file.schema_arrow):
            for batch in file.iter_batches(PIECE, columns=list(names)):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{path}: cannot be read: {get_first_line(error, 200)}") from error


def _iterate_texts(path: Path) -> Iterator[str]:
    suffix = path.suffix.lower()
    if suffix in _PARQUET:
        for table in _read_parquet(path, _list_text_columns):
            for column in table.columns:
                yield from (text for text in column.to_pylist() if text)
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if suffix in _JSON:
                yield from _iterate_json_texts(line, f"{path}, line {number}")
            elif text := line.strip():
                yield text


def _list_text_columns(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if str(field.type) in ("string", "large_string")]


def _iterate_json_texts(line: str, where: str) -> Iterator[str]:
    """Yield every string in a line of JSON."""
    if not line.strip():
        return
    try:
        waiting = [parse_json(line)]
    except ValueError as error:
        raise BadData(f"{where}: not JSON") from error
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and value.strip():
            yield value.strip()
        elif isinstance(value, dict):
            waiting += list(value.values())
        elif isinstance(value, list):
            waiting += value
