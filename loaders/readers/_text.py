"""Text files in any encoding as complete lines of UTF-8, without comments and skipped lines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO

from ...core.errors import BadData, BadDefinition
from ._inputs import Input

_CHUNK = 1 << 22
"""Bytes per read."""

_LONGEST = 1 << 28
"""A file with a longer line, in bytes, is not considered text."""


@dataclass(frozen=True)
class TextForm:
    """Format of a text file: its `encoding`, how many lines to `skip` at its beginning, and the prefix of a `comment`
    line."""

    encoding: str = "utf-8"
    skip: int = 0
    comment: str = ""

    @cached_property
    def codec(self) -> str:
        """The codec's canonical name."""
        try:
            return codecs.lookup(self.encoding).name
        except LookupError as error:
            raise BadDefinition(
                f"table: option encoding: unknown encoding {self.encoding!r}: use utf-8, latin-1, cp1252, utf-16 .."
            ) from error

    @cached_property
    def _comment_lines(self) -> re.Pattern[bytes]:
        return re.compile(rb"(?m)^" + re.escape(self.comment.encode()) + rb"[^\n]*\n?")

    def blocks(self, source: Input) -> Iterator[bytes]:
        """Yield the text in blocks of complete lines, without skipped lines and comments. Other encodings are converted
        to UTF-8; files in UTF-8 are not checked. Raises `BadData` with the line if a text is not in the encoding."""
        with source.opened() as file:
            yield from self._without_head(self._decoded(_iterate_whole_lines(source, file), source))

    def _without_head(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        left = self.skip
        for number, block in enumerate(blocks):
            if not number:
                block = block.removeprefix(codecs.BOM_UTF8)
            while left and block:
                _, _, block = block.partition(b"\n")
                left -= 1
            if self.comment:
                block = self._comment_lines.sub(b"", block)
            if block:
                yield block

    def _decoded(self, blocks: Iterator[bytes], source: Input) -> Iterator[bytes]:
        if self.codec == "utf-8":
            yield from blocks
            return
        # Blocks end at line-feed bytes, which may be half a character in UTF-16: the decoder keeps the rest.
        decoder, lines, rest = codecs.getincrementaldecoder(self.codec)(), 0, ""
        for block in blocks:
            try:
                text = rest + decoder.decode(block)
            except UnicodeDecodeError as error:
                raise _make_decode_error(
                    source, lines + block.count(b"\n", 0, error.start) + 1, self.encoding
                ) from error
            lines += text.count("\n") - rest.count("\n")
            text, cut, rest = text.rpartition("\n")
            if cut:
                yield (text + cut).encode()
        if rest:
            yield rest.encode()

    def lines(self, source: Input) -> Iterator[tuple[int, str]]:
        """Yield each line with its number in the file, from 1, without skipped lines and comments. Slow: for locating
        errors. Raises `BadData` at a line that is not in the encoding."""
        name = "utf-8-sig" if self.codec == "utf-8" else self.encoding
        with source.opened() as file:
            if self.codec.startswith(("utf-16", "utf-32")):
                text = codecs.getreader(self.codec)(file)
                numbered: Iterator[tuple[int, str]] = enumerate(text, 1)
            else:
                raw = enumerate(iter(file.readline, b""), 1)
                numbered = ((number, _decode_line(source, number, line, name, self.encoding)) for number, line in raw)
            for number, line in numbered:
                if number > self.skip and not (self.comment and line.startswith(self.comment)):
                    yield number, line


def _decode_line(source: Input, number: int, line: bytes, codec: str, encoding: str) -> str:
    try:
        return line.decode(codec if number == 1 else codec.removesuffix("-sig"))
    except UnicodeDecodeError as error:
        raise _make_decode_error(source, number, encoding) from error


def _make_decode_error(source: Input, line: int, encoding: str) -> BadData:
    return BadData(
        f"{source.name}, line {line}: not {encoding} text: set the file's encoding, such as options = {{ encoding = "
        '"latin-1" }'
    )


def _iterate_whole_lines(source: Input, file: BinaryIO) -> Iterator[bytes]:
    rest: list[bytes] = []
    while chunk := file.read(_CHUNK):
        head, cut, tail = chunk.rpartition(b"\n")
        if not cut:
            rest.append(chunk)
            if sum(map(len, rest)) > _LONGEST:
                raise BadData(f"{source.name} has a line of over {_LONGEST:,} bytes: it is not a text file")
            continue
        yield b"".join([*rest, head, cut])
        rest = [tail] if tail else []
    if rest:
        yield b"".join(rest)
