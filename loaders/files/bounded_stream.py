"""Streams of unpacked data that end in an error before they fill memory or disk."""

from __future__ import annotations

import io
from typing import Any

from ...core.errors import BadData
from ...core.limits import may_expand


class BoundedStream(io.RawIOBase):
    """What a file of `size` bytes unpacks to. Raises `BadData` if that is far more (`core/limits.py`)."""

    def __init__(self, content: Any, size: int, name: str) -> None:
        self._content, self._size, self._name, self._read = content, size, name, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._content.read(len(buffer))
        buffer[: len(piece)] = piece
        self._read += len(piece)
        refuse_bomb(self._size, self._read, self._name)
        return len(piece)


def refuse_bomb(packed: int, unpacked: int, where: str) -> None:
    """Raise `BadData` if `packed` bytes become far more (`core/limits.py`)."""
    if not may_expand(packed, unpacked):
        raise BadData(
            f"{where} unpacks to more than {unpacked:,} bytes from {packed:,}: refused as a possible decompression "
            "bomb; if this is right, provide it uncompressed"
        )
