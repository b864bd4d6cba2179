"""Counter-based randomness for many replicas at once: a pure function of (replica's key, stream, counter).

A replica draws the same numbers alone or among many, on every device, and after a resume, because nothing is
remembered between draws. Bits are SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014) over an odd-multiplied
counter, as in `core/draws.py` seeded by name; int64 arithmetic wraps alike on CPU and GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...core.draws import derive_key

if TYPE_CHECKING:
    from collections.abc import Iterator


def _to_signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


_GOLDEN, _FIRST, _SECOND = (_to_signed(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _shift_right(x: Tensor, by: int) -> Tensor:
    """Logical shift to the right (torch's is arithmetic)."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def mix_bits(x: Tensor) -> Tensor:
    """SplitMix64's finaliser of int64 values, elementwise."""
    x = (x ^ _shift_right(x, 30)) * _FIRST
    x = (x ^ _shift_right(x, 27)) * _SECOND
    return x ^ _shift_right(x, 31)


def make_keys(names: Sequence[str], device: str | torch.device = "cpu") -> Tensor:
    """One key for each replica's name, (K,) int64."""
    return torch.tensor([_to_signed(derive_key(name)) for name in names], dtype=torch.int64, device=device)


def derive_stream(keys: Tensor, name: str, *counters: int | Tensor) -> Tensor:
    """The keys (K,) of a named stream of each replica, further distinguished by counters such as an epoch or a step (a
    tensor if rows belong to different steps)."""
    mixed_keys = mix_bits(keys ^ _to_signed(derive_key(name)))
    for counter in counters:
        turn = (counter + 1) * _GOLDEN
        mixed_keys = mix_bits(mixed_keys + (turn if isinstance(turn, Tensor) else _to_signed(turn % (1 << 64))))
    return mixed_keys


def draw_bits(keys: Tensor, count: int) -> Tensor:
    """`count` words of 64 random bits for each key, (K, count) int64."""
    return mix_bits(keys[:, None] + _number_positions((count,), keys.device))


def _number_positions(shape: Sequence[int], device: torch.device) -> Tensor:
    """A number for each position of an array, independent of the lengths of its axes: if a batch is padded further, the
    draws for its previous positions stay the same."""
    numbers = torch.zeros((), dtype=torch.int64, device=device)
    for axis, length in enumerate(reversed(shape)):
        numbers = numbers + _number_axis(axis, length, device)
    return numbers


@lru_cache(maxsize=256)
def _number_axis(axis: int, length: int, device: torch.device) -> Tensor:
    """A number for each index along an axis, (length, 1, ..); the last axis is 0."""
    stride = _GOLDEN
    for _ in range(axis):
        stride = _to_signed((stride * _FIRST) % (1 << 64))
    return (torch.arange(1, length + 1, dtype=torch.int64, device=device) * stride).view(-1, *[1] * axis)


def draw_uniform(keys: Tensor, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
    """Uniform on [0, 1), (K, *shape): 24 bits in float32, 53 in float64."""
    digits, exact = (53, torch.float64) if dtype == torch.float64 else (24, torch.float32)
    drawn = mix_bits(keys.view(-1, *[1] * len(shape)) + _number_positions(shape, keys.device))
    return (_shift_right(drawn, 64 - digits).to(exact) * 2.0**-digits).to(dtype)


def draw_normal(keys: Tensor, shape: Sequence[int], dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal, (K, *shape) (Box and Muller, Annals of Mathematical Statistics 1958)."""
    first, second = (draw_uniform(derive_stream(keys, name), shape, torch.float64) for name in ("radius", "angle"))
    return (torch.sqrt(-2 * torch.log1p(-first)) * torch.cos(2 * math.pi * second)).to(dtype)


def draw_permutations(keys: Tensor, count: int) -> Tensor:
    """A random order of 0 .. count - 1 for each key, (K, count) int64."""
    return draw_bits(keys, count).argsort(dim=1, stable=True)


def draw_beta(keys: Tensor, shape: Sequence[int], a: float) -> Tensor:
    """Beta(a, a) draws, (K, *shape) float64, from a generator for each key: for a few values a step."""
    import numpy as np

    count = math.prod(shape)
    rows = [np.random.Generator(np.random.Philox(key=value % (1 << 64))).beta(a, a, count) for value in keys.tolist()]
    return torch.from_numpy(np.stack(rows)).to(keys.device).view(len(keys), *shape)


_KEYS_AT_ONCE = 32
"""Draws of a step whose keys are derived together."""


@dataclass
class Rng:
    """The random state of the layers while a replica stack trains: each replica's key, the step, and the number of
    draws in this step.

    `silent` (evaluation): dropout and the like do nothing."""

    keys: Tensor
    step: int = 0
    silent: bool = True
    _drawn: int = field(default=0, repr=False)
    _ready: list[Tensor] = field(default_factory=list, repr=False)

    def at(self, step: int) -> None:
        """Begin a training step: its draws are counted from 0."""
        self.step, self.silent, self._drawn, self._ready = step, False, 0, []

    def fresh(self) -> Tensor:
        """Keys (K,) for one draw, different from all others of this step."""
        self._drawn += 1
        while self._drawn > len(self._ready):
            # Many at once: a step of a deep network draws often, and on a GPU each small operation is a launch.
            first = len(self._ready) + 1
            counters = torch.arange(first, first + _KEYS_AT_ONCE, device=self.keys.device)
            self._ready += derive_stream(self.keys, "noise", self.step, counters[:, None]).unbind()
        return self._ready[self._drawn - 1]

    def skip(self) -> None:
        """Count a draw that is not made, so that later ones do not depend on whether it was made."""
        self._drawn += 1

    @contextmanager
    def disabled(self) -> Iterator[None]:
        """Evaluation mode: no noise inside."""
        before, self.silent = self.silent, True
        try:
            yield
        finally:
            self.silent = before
