"""MATLAB's .mat files of versions 5 to 7: arrays of numbers (sparse ones too) and of text.

The format is MathWorks' "MAT-File Format" (level 5): an element is a tag (type, bytes) and data, padded to 8 bytes;
an array is an element that consists of elements (flags, dimensions, name, values), and may be compressed. Cell arrays,
structures and objects are skipped.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_HEAD = 128
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32", 4: "utf-16", 2: "latin-1", 1: "latin-1"}
_MATRIX, _COMPRESSED = 14, 15
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_CHARACTERS, _SPARSE, _COMPLEX = 4, 5, 0x800


def read_matlab(raw: Path | bytes) -> dict[str, NDArray[Any]]:
    """Read the arrays of a file by name, in MATLAB's shapes (at least two axes); a text array has one string per row.

    Raises `ValueError` if the file has another format or is cut off.
    """
    content = memoryview(raw.read_bytes() if isinstance(raw, Path) else raw)
    ends = bytes(content[126:128])
    if len(content) < _HEAD or ends not in (b"IM", b"MI"):
        raise ValueError("its header is not that of MATLAB 5 to 7")
    return dict(_iterate_arrays(content[_HEAD:], "<" if ends == b"IM" else ">"))


def _iterate_arrays(content: memoryview, order: str) -> Iterator[tuple[str, NDArray[Any]]]:
    for kind, data in _iterate_elements(content, order):
        if kind == _COMPRESSED:
            yield from _iterate_arrays(memoryview(_inflate_data(data)), order)
        elif kind == _MATRIX and (named_array := _parse_array(data, order)):
            yield named_array


def _inflate_data(data: memoryview) -> bytes:
    inflate = zlib.decompressobj()
    content = inflate.decompress(data)
    if not inflate.eof:
        raise ValueError("a compressed array is cut off")
    return content


def _iterate_elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield the type and data of each element."""
    at = 0
    while at + 8 <= len(content):
        kind, size = (int(word) for word in np.frombuffer(content[at : at + 8], f"{order}u4"))
        if kind >> 16:  # a small element: its data are within the tag
            yield kind & 0xFFFF, content[at + 4 : at + 4 + (kind >> 16)]
            at += 8
            continue
        if at + 8 + size > len(content):
            raise ValueError(f"it is cut off: {at + 8 + size - len(content):,} bytes of an array are missing")
        yield kind, content[at + 8 : at + 8 + size]
        at += 8 + size + (0 if kind == _COMPRESSED else -size % 8)


def _parse_array(data: memoryview, order: str) -> tuple[str, NDArray[Any]] | None:
    (_, flags), (_, sides), (_, letters), *values = _iterate_elements(data, order)
    what = int(np.frombuffer(flags, f"{order}u4")[0])
    shape = tuple(int(side) for side in np.frombuffer(sides, f"{order}i4"))
    name = bytes(letters).decode("latin-1")
    if what & _COMPLEX:
        return None
    if what & 0xFF == _CHARACTERS:
        kind, text = values[0] if values else (2, memoryview(b""))
        endian = {"<": "-le", ">": "-be"}[order] if _TEXTS[kind][:6] in ("utf-16", "utf-32") else ""
        letters_of = np.array(list(bytes(text).decode(_TEXTS[kind] + endian)), "U1").reshape(shape, order="F")
        return name, np.array(["".join(row) for row in letters_of.reshape(shape[0], -1)])
    if what & 0xFF == _SPARSE:
        rows, starts, numbers = (_parse_numbers(kind, part, order) for kind, part in values[:3])
        dense = np.zeros(shape, numbers.dtype)
        counts = np.diff(starts)
        dense[rows[: counts.sum()], np.repeat(np.arange(shape[1]), counts)] = numbers[: counts.sum()]
        return name, dense
    if what & 0xFF not in _CLASSES:
        return None
    array = _parse_numbers(*values[0], order).astype(_CLASSES[what & 0xFF], copy=False)
    return name, array.reshape(shape, order="F")


def _parse_numbers(kind: int, data: memoryview, order: str) -> NDArray[Any]:
    return np.frombuffer(data, f"{order}{_STORED[kind]}")
