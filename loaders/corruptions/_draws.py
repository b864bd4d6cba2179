"""Random numbers for corruptions: pure functions of a row id, a corruption and a severity."""

from __future__ import annotations

from functools import cache
from math import prod
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits

_QUANTILES = 2**16
_UNIT = 2**20
"""Normal draws are multiples of 2^-20."""


class Draws:
    """Streams of random numbers for rows. `name` is their purpose, such as `fog/3`; two draws with the same `what` give
    the same numbers. A row's numbers depend on its id alone."""

    def __init__(self, ids: NDArray[np.uint64], name: str):
        self.ids = np.asarray(ids, np.uint64)
        self.name = name

    def bits(self, what: str, *shape: int) -> NDArray[np.uint64]:
        """64 random bits, shape (rows, *shape)."""
        stream = f"corruptions/{self.name}/{what}"
        first = draw_bits(f"{stream}/row", self.ids)
        # Each row counts from its own random number; two rows' counters overlap as rarely as a hash collision.
        counters = np.add.outer(first, np.arange(prod(shape), dtype=np.uint64))
        return draw_bits(stream, counters).reshape(len(self.ids), *shape)

    def uniform(self, what: str, *shape: int) -> NDArray[np.float64]:
        """Numbers in [0, 1) of 53 random bits, shape (rows, *shape)."""
        return (self.bits(what, *shape) >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def between(self, what: str, low: float, high: float, *shape: int) -> NDArray[np.float64]:
        """Numbers in [low, high), shape (rows, *shape)."""
        return low + (high - low) * self.uniform(what, *shape)

    def below(self, what: str, bound: int, *shape: int) -> NDArray[np.int64]:
        """Integers in [0, bound), bound at most 2^31, shape (rows, *shape)."""
        return ((self.bits(what, *shape) >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)

    def normal(self, what: str, *shape: int) -> NDArray[np.float64]:
        """Standard normal numbers, shape (rows, *shape): the quantile of 16 random bits, at most 4.3 in absolute value,
        whose distribution function differs from the normal one by at most 2^-17."""
        values: NDArray[np.float64] = _compute_normal_quantiles()[self.bits(what, *shape) >> np.uint64(48)]
        return values


@cache
def _compute_normal_quantiles() -> NDArray[np.float64]:
    """The normal quantiles of (i + 1/2) / 65536, rounded, since a library's logarithm may differ in its last digit
    between machines."""
    normal = NormalDist()
    upper = [round(normal.inv_cdf((_QUANTILES // 2 + i + 0.5) / _QUANTILES) * _UNIT) for i in range(_QUANTILES // 2)]
    return np.array([*(-value for value in reversed(upper)), *upper]) / _UNIT
