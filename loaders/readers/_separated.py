"""Delimited text (CSV, TSV ..) as columns of text, block by block; errors name the line."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ...core.errors import BadData, get_first_line
from ._cells import Cells
from ._inputs import Input
from ._text import TextForm

SPACES = "spaces"
"""The name of the separator that is any run of spaces and tabs."""

_UNIT = "\x1f"
"""Replaces a separator of several characters: ASCII's unit separator, which does not occur in text."""

_BLOCK = 1 << 23

ColumnSelector = Callable[[Sequence[str]], Iterable[int]]


@dataclass(frozen=True)
class DelimitedFormat:
    """A format of delimited text. `header`: whether the first line names the columns, or the names if no line does.
    `separator`: one or several characters, or `spaces`. `quote`: "" if quotes are ordinary text."""

    text: TextForm
    separator: str = ","
    quote: str = '"'
    escape: str = ""
    header: bool | tuple[str, ...] = True

    @property
    def _cut(self) -> str:
        return self.separator if len(self.separator) == 1 else _UNIT

    def _cells_apart(self, block: bytes) -> bytes:
        if self.separator == SPACES:
            return re.sub(rb"[ \t]+", _UNIT.encode(), re.sub(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)", b"", block))
        return block if len(self.separator) == 1 else block.replace(self.separator.encode(), _UNIT.encode())

    def read(self, source: Input, select_columns: ColumnSelector | None = None) -> Iterator[Cells]:
        """Yield the rows of a file in blocks. `select_columns` is called with the column names, and returns the indices
        of those to read. Raises `BadData` with the line if a row has more or fewer cells than the first, or a text is
        not in the encoding."""
        blocks = map(self._cells_apart, self.text.blocks(source))
        first = next(blocks, b"")
        if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise BadData(f'{source.name}: UTF-16 text: set options = {{ encoding = "utf-16" }}')
        names, rest = self._names(first)
        if names:
            places = sorted(select_columns(names)) if select_columns else range(len(names))
            yield from self._parsed(source, names, places, chain([rest], blocks))

    def _names(self, block: bytes) -> tuple[list[str], bytes]:
        """Return the names of the columns, and the block without the header line."""
        if not block:
            return [], b""
        ended = 0
        lines = block.splitlines(keepends=True)

        def iterate_decoded() -> Iterator[str]:
            nonlocal ended
            for line in lines:
                ended += len(line)
                yield line.decode(errors="replace")

        try:
            first = next(row for row in self._reader(iterate_decoded()) if row)
        except (StopIteration, csv.Error):
            return [], b""
        if self.header is True:
            return [name.strip() for name in first], block[ended:]
        return list(self.header or map(str, range(len(first)))), block

    def _reader(self, lines: Iterator[str]) -> Iterator[list[str]]:
        # The same dialect as Arrow's parser below.
        return csv.reader(
            lines,
            delimiter=self._cut,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            escapechar=self.escape or None,
            strict=bool(self.quote),
        )

    def _parsed(
        self, source: Input, names: list[str], indices: Iterable[int], blocks: Iterator[bytes]
    ) -> Iterator[Cells]:
        keys = [str(index) for index in range(len(names))]
        done = 0
        try:
            reader = pa.csv.open_csv(
                pa.PythonFile(_Stream(blocks), "r"),
                read_options=pa.csv.ReadOptions(column_names=keys, block_size=_BLOCK),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self._cut,
                    quote_char=self.quote or False,
                    escape_char=self.escape or False,
                    newlines_in_values=bool(self.quote),
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(keys, pa.string()),
                    # At least one column is read, to count the rows.
                    include_columns=[str(index) for index in indices] or keys[:1],
                    strings_can_be_null=False,
                    null_values=[],
                ),
            )
            for batch in reader:
                rows = np.arange(done, done + batch.num_rows)
                yield Cells(source.name, names, pa.Table.from_batches([batch]), rows, partial(self._line, source))
                done += batch.num_rows
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return
            raise self._wrong(source, names, error) from error

    def _numbered(self, source: Input) -> Iterator[tuple[int, list[str]]]:
        """Yield each row below the header with the number of its first line."""
        numbers: list[int] = []

        def lines() -> Iterator[str]:
            for number, line in self.text.lines(source):
                numbers.append(number)
                yield self._cells_apart(line.encode()).decode()

        header = self.header is True
        for row in self._reader(lines()):
            begun = numbers[0]
            numbers.clear()
            if not row:
                continue
            if header:
                header = False
                continue
            yield begun, row

    def _line(self, source: Input, row: int) -> str:
        for index, (number, _) in enumerate(self._numbered(source)):
            if index == row:
                return f"line {number}"
        return f"row {row + 1}"

    def _wrong(self, source: Input, names: list[str], error: Exception) -> BadData:
        """Find the line of an error by reading the file again, row by row."""
        begun = 0
        try:
            for number, row in self._numbered(source):
                begun = number
                if len(row) != len(names):
                    return BadData(
                        f"{source.name}, line {number}: {len(row)} cells, but the first line has {len(names)}: check "
                        "`separator`, `quote`, `escape`, `comment` and `skip` of `options`"
                    )
        except BadData as cause:
            return cause
        except csv.Error as cause:
            after = f"after line {begun}" if begun else "at its beginning"
            return BadData(
                f"{source.name}, {after}: an unmatched quote ({cause}): if quotes are ordinary text, set "
                "options = { quote = '' }"
            )
        return BadData(f"{source.name}: not a readable table: {get_first_line(error)}")


class _Stream:
    """A read-only file over blocks of bytes."""

    closed = False

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, memoryview(b"")

    def read(self, size: int = -1) -> bytes:
        content = bytearray()
        while size < 0 or len(content) < size:
            if not self._left:
                block = next(self._blocks, None)
                if block is None:
                    break
                self._left = memoryview(block)
            piece = self._left if size < 0 else self._left[: size - len(content)]
            content += piece
            self._left = self._left[len(piece) :]
        return bytes(content)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True
