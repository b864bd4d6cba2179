"""Text files of one row a line, taken apart by a regular expression with named groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path], *, pattern: str) -> pa.Table:
    """One text column per named group of `pattern` (RE2 syntax), one row per line of all files in order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lines: list[str] = []
    for name, path in files.items():
        try:
            lines += path.read_text("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise BadData(f"{name} is not UTF-8 text: byte {error.start}") from error
    parts = pc.extract_regex(pa.array(lines, pa.string()), pattern)
    if parts.null_count:
        first = pc.index(parts.is_null(), True).as_py()
        raise BadData(f"{', '.join(files)}: line {first + 1} does not fit the pattern: {lines[first][:60]!r}")
    return pa.Table.from_struct_array(parts)
