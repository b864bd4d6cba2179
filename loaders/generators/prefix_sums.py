"""Prefix sums modulo 2: the task of Schwarzschild et al. 2021 (arXiv 2106.04537), with a seeded generator.

The input is a string of bits; the i-th output bit is the parity of the first i input bits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.draws import draw_bits
from ...core.errors import BadDefinition
from ._rows import find_distinct_rows


def rows(*, seed: str, counts: dict[str, int]) -> pa.Table:
    """`counts` different strings per length. Columns `bits` and `sums` (text of 0 and 1) and `length`."""
    inputs: list[bytes] = []
    sums: list[bytes] = []
    lengths: list[int] = []
    for length, count in sorted((int(length), count) for length, count in counts.items()):
        values = _draw_distinct(f"{seed}/{length}", length, count)
        inputs += _format_bits(values)
        sums += _format_bits(np.bitwise_xor.accumulate(values, axis=1))
        lengths += [length] * count
    columns = {"bits": pa.array(inputs).cast(pa.string()), "sums": pa.array(sums).cast(pa.string()), "length": lengths}
    return pa.table(columns)


def _draw_distinct(stream: str, length: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Draw the first `count` distinct bit strings of a named stream, shape (count, length)."""
    if count > 2 ** min(length, 40) // 2:
        raise BadDefinition(f"prefix_sums: {count} different strings of {length} bits are too many to draw")
    words = -(-length // 64)
    draw_count = count + count // 8 + 64
    while True:
        counters = np.arange(draw_count * words, dtype=np.uint64)
        raw = draw_bits(stream, counters).astype(">u8").view(np.uint8).reshape(draw_count, words * 8)
        values = np.unpackbits(raw, axis=1)[:, :length]
        first = find_distinct_rows(values, count)
        if len(first) == count:
            return values[first]
        draw_count *= 2


def _format_bits(values: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> list[bytes]:
    text: list[bytes] = np.ascontiguousarray(values + np.uint8(48)).view(f"S{values.shape[1]}").ravel().tolist()
    return text
