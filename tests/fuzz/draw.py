"""What the mutations draw from: a generator that its name seeds, and values that have broken readers before."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np

NUMBERS = [
    0,
    1,
    -1,
    2**31 - 1,
    2**31,
    -(2**31),
    2**32 - 1,
    2**63 - 1,
    -(2**63),
    2**64,
    10**9,
    10**400,
    1e308,
    -0.0,
    0.5,
]
TEXTS = [
    "", " ", "\x00", "a\nb", "../../etc/passwd", "x" * 5000, "\u202egnp.exe", "\ud7ff\ufeff", "é" * 300, "e\u0301",
    "<script>alert(1)</script>", "{{7*7}}", "%s%n", "'; DROP TABLE entries; --", "nan", "2026-01-01", "last", "𝔸" * 50,
]  # fmt: skip


class Draw:
    """Draws of one case."""

    def __init__(self, name: str) -> None:
        seed = int.from_bytes(sha256(f"farshift/fuzz/{name}".encode()).digest()[:8], "big")
        self._from = np.random.Generator(np.random.PCG64(seed))

    def below(self, most: int) -> int:
        return int(self._from.integers(max(1, most)))

    def chance(self, share: float) -> bool:
        return bool(self._from.random() < share)

    def one(self, items: Any) -> Any:
        """One of the items."""
        items = list(items)
        return items[self.below(len(items))]

    def bytes(self, most: int) -> bytes:
        return self._from.bytes(self.below(most) + 1)

    def value(self, depth: int = 0) -> Any:
        """A value of any type that TOML has."""
        kind = self.below(9 if depth < 3 else 6)
        if kind < 2:
            return self.one(NUMBERS)
        if kind < 4:
            return self.one(TEXTS)
        if kind == 4:
            return self.one([True, False, float("nan"), float("inf"), float("-inf")])
        if kind == 5:
            return self.one([[], {}, [[]], [{}], [1, "a", 2.0]])
        if kind == 6:
            return [self.value(depth + 1) for _ in range(self.below(4))]
        return {self.one([*TEXTS[4:], "a", "b"]): self.value(depth + 1) for _ in range(self.below(4))}

    def damaged(self, content: bytes, times: int = 4, near: int | None = None) -> bytes:
        """The bytes with some of them changed, added, removed, repeated or cut off; `near` the end where it is given."""
        result = bytearray(content)
        for _ in range(1 + self.below(times)):
            if not result:
                break
            low = max(0, len(result) - near) if near else 0
            position = low + self.below(len(result) - low)
            what = self.below(10)
            if what < 4:
                result[position] = self.below(256)
            elif what < 6:
                result[position] ^= 1 << self.below(8)
            elif what == 6:
                width = self.one([1, 2, 4, 8])
                result[position : position + width] = self.one([b"\xff", b"\x00", b"\x7f", b"\x80"]) * width
            elif what == 7:
                del result[position : position + 1 + self.below(16)]
            elif what == 8:
                result[position:position] = (
                    self.bytes(8) if self.chance(0.7) else result[position : position + self.below(64)]
                )
            elif self.chance(0.2):
                del result[position:]
        return bytes(result)
