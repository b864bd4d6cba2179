"""Text files as complete lines of UTF-8, whatever encoding they are in, without comments and heads."""

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
"""Bytes that are read at once."""

_LONGEST = 1 << 28
"""The bytes of a line beyond which a file is taken for no text."""


@dataclass(frozen=True)
class TextForm:
    """How a file's text is written: its `encoding`, how many lines to `skip` at its head, and how a line that is a
    `comment` begins."""

    encoding: str = "utf-8"
    skip: int = 0
    comment: str = ""

    @cached_property
    def codec(self) -> str:
        """The codec's own name, which is one for all ways of writing it."""
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
        """The file's text in blocks of complete lines, as UTF-8 that nobody has checked yet; skipped lines and comments
        left out. `BadData` where another encoding does not fit, with the line."""
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
        # Bytes are cut at line feeds, which are one byte of many in UTF-16: what is left of a character waits.
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
        """Each line with its number in the file, from 1; skipped lines and comments left out. It is slow, and says
        where something stands. `BadData` at a line that is not in the encoding."""
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
        f"{source.name}, line {line}: not {encoding} text: name the file's encoding, such as options = {{ encoding = "
        '"latin-1" }'
    )


def _iterate_whole_lines(source: Input, file: BinaryIO) -> Iterator[bytes]:
    rest: list[bytes] = []
    while chunk := file.read(_CHUNK):
        head, cut, tail = chunk.rpartition(b"\n")
        if not cut:
            rest.append(chunk)
            if sum(map(len, rest)) > _LONGEST:
                raise BadData(f"{source.name} has a line of over {_LONGEST:,} bytes: it is no text of lines")
            continue
        yield b"".join([*rest, head, cut])
        rest = [tail] if tail else []
    if rest:
        yield b"".join(rest)
