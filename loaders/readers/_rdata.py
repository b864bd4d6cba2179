"""Vectors, matrices and data frames of an RData file, read without R.

The format is R's serialisation in XDR (big-endian), versions 2 and 3, after the header "RDX2" or "RDX3", gzipped (R
Internals, section 1.8). Only data are read: numbers, strings, lists and their attributes. Functions, environments and
other language objects are refused; no code of the file is run.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import BadData

_SYMBOL, _PAIRLIST, _LOGICALS, _INTEGERS, _REALS, _STRINGS, _LIST = 1, 2, 10, 13, 14, 16, 19
_NULL, _REFERENCE = 254, 255
_DEEPEST = 100


@dataclass
class Value:
    """A vector: an array, or a list of strings or values; with its attributes (`names`, `dim` ..)."""

    data: Any
    attributes: dict[str, Value] = field(default_factory=dict)

    def matrix(self) -> np.ndarray[Any, Any]:
        """Return the array in the shape of its attribute `dim` (R stores it in column-major order)."""
        shape = tuple(int(side) for side in self.attributes["dim"].data) if "dim" in self.attributes else (-1,)
        return np.asarray(self.data).reshape(shape, order="F")


def read_rdata(path: Path, name: str) -> dict[str, Value]:
    """Read the objects of an RData file by name. Raises `BadData` if it has another format, is cut off, or holds
    language objects."""
    content = path.read_bytes()
    for magic, opened in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ", lzma.decompress)):
        if content.startswith(magic):
            try:
                content = opened(content)
            except (OSError, EOFError, lzma.LZMAError) as error:
                raise BadData(f"{name}: damaged or cut off: {error}") from error
    if content[:7] not in (b"RDX2\nX\n", b"RDX3\nX\n"):
        raise BadData(f"{name}: not a file that R saved in its binary format")
    try:
        return _Reader(content, name).objects()
    except (struct.error, ValueError, RecursionError) as error:
        raise BadData(f"{name}: cut off, or not what R writes") from error


class _Reader:
    def __init__(self, content: bytes, name: str) -> None:
        self._content, self._name, self._at = content, name, 7
        self._symbols: list[str] = []

    def objects(self) -> dict[str, Value]:
        version = self._int()
        self._at += 8  # the versions of R that wrote it and that it needs
        if version == 3:
            self._at += self._int()  # the native encoding
        return self._pairs(self._int(), 0)

    def _int(self) -> int:
        (value,) = struct.unpack_from(">i", self._content, self._at)
        self._at += 4
        return int(value)

    def _array(self, kind: str) -> np.ndarray[Any, Any]:
        count = self._int()
        if count < 0:
            raise BadData(f"{self._name}: a vector of more than 2^31 values")
        values = np.frombuffer(self._content, kind, count, self._at)
        self._at += values.nbytes
        return values.astype(kind.replace(">", "="))

    def _pairs(self, flags: int, depth: int) -> dict[str, Value]:
        """Read a pairlist from its first flags on: values by tag."""
        pairs: dict[str, Value] = {}
        while flags & 255 == _PAIRLIST:
            if flags & 0x200:
                self._pairs(self._int(), depth + 1)
            tag = self._symbol(self._int()) if flags & 0x400 else ""
            pairs[tag] = self._value(self._int(), depth + 1)
            flags = self._int()
        if flags & 255 != _NULL:
            raise BadData(f"{self._name}: holds an R language object (type {flags & 255}), not data")
        return pairs

    def _symbol(self, flags: int) -> str:
        if flags & 255 == _REFERENCE:
            return self._symbols[(flags >> 8 or self._int()) - 1]
        if flags & 255 != _SYMBOL:
            raise BadData(f"{self._name}: expected a name, found type {flags & 255}")
        self._int()  # the flags of its characters
        text = self._text()
        self._symbols.append(text)
        return text

    def _text(self) -> str:
        length = self._int()
        if length < 0:
            return ""  # NA
        text = self._content[self._at : self._at + length].decode("utf-8", "replace")
        self._at += length
        return text

    def _value(self, flags: int, depth: int) -> Value:
        if depth > _DEEPEST:
            raise BadData(f"{self._name}: lists are nested deeper than {_DEEPEST}")
        kind = flags & 255
        if kind == _NULL:
            return Value([])
        if kind == _PAIRLIST:
            return Value(self._pairs(flags, depth))
        data: Any
        if kind in (_LOGICALS, _INTEGERS):
            data = self._array(">i4")
        elif kind == _REALS:
            data = self._array(">f8")
        elif kind == _STRINGS:
            data = [self._string() for _ in range(self._int())]
        elif kind == _LIST:
            data = [self._value(self._int(), depth + 1) for _ in range(self._int())]
        else:
            raise BadData(f"{self._name}: holds an R language object (type {kind}), not data")
        return Value(data, self._pairs(self._int(), depth + 1) if flags & 0x200 else {})

    def _string(self) -> str:
        self._int()
        return self._text()
