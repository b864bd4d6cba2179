"""Local training texts: a Parquet file, a text file (one text a line), JSON lines, or a folder of these. Nothing is
sent to another machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, FarshiftError, get_first_line

if TYPE_CHECKING:
    import pyarrow as pa

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
        piece: list[str] = []
        for path in self.files:
            for text in _iterate_texts(path):
                piece.append(text)
                if len(piece) == PIECE:
                    yield piece
                    piece = []
        if piece:
            yield piece

    def tables(self, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """Yield the given columns of every Parquet file that has all of them, in pieces."""
        import pyarrow as pa

        for path in self.files:
            if path.suffix.lower() not in _PARQUET:
                continue
            file = _open_corpus_file(path)
            if set(columns) <= set(file.schema_arrow.names):
                try:
                    for batch in file.iter_batches(PIECE, columns=list(columns)):
                        yield pa.Table.from_batches([batch])
                except (pa.ArrowException, OSError) as error:
                    raise _make_read_error(path, error) from error


def _open_corpus_file(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise _make_read_error(path, error) from error


def _make_read_error(path: Path, error: Exception) -> BadData:
    return BadData(f"{path}: cannot be read: {get_first_line(error, 200)}")


def _iterate_texts(path: Path) -> Iterator[str]:
    import pyarrow as pa

    suffix = path.suffix.lower()
    if suffix in _PARQUET:
        file = _open_corpus_file(path)
        names = [field.name for field in file.schema_arrow if str(field.type) in ("string", "large_string")]
        if not names:
            return
        try:
            for batch in file.iter_batches(PIECE, columns=names):
                for column in batch.columns:
                    yield from (text for text in column.to_pylist() if text)
        except (pa.ArrowException, OSError) as error:
            raise _make_read_error(path, error) from error
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if suffix in _JSON:
                yield from _iterate_json_texts(line, f"{path}, line {number}")
            elif text := line.strip():
                yield text


def _iterate_json_texts(line: str, where: str) -> Iterator[str]:
    """Yield every string in a line of JSON."""
    if not line.strip():
        return
    try:
        waiting = [json.loads(line)]
    except (ValueError, RecursionError) as error:
        raise BadData(f"{where}: not JSON") from error
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and value.strip():
            yield value.strip()
        elif isinstance(value, dict):
            waiting += list(value.values())
        elif isinstance(value, list):
            waiting += value
