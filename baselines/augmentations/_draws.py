"""The random draws of a step's augmentation: a pure function of (replica's key, step, row).

There is no state between draws: a row is augmented the same alone or among many, in any process, and after a resume. A
row that is in a batch twice is augmented the same both times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..replicas.hyperparameters import Hyperparameters
from ..replicas.rng import derive_stream, draw_permutations, draw_uniform, mix_bits

_ODD = -0x61C8864680B583EB
"""2^64 over the golden ratio as a signed number: row numbers times it are far apart."""


@dataclass(frozen=True)
class Draws:
    """Draws for B rows, each named by its purpose."""

    keys: Tensor
    """The key of each row, (B,) int64."""
    replica: Tensor
    """Which replica each row is trained by, (B,)."""
    hyperparameters: Hyperparameters

    @classmethod
    def of(cls, keys: Tensor, step: int | Tensor, rows: Tensor, name: str, hyperparameters: Hyperparameters) -> Draws:
        """For the rows (K, n) of replicas with keys (K,): draws depend on the augmentation's name, the step (counted
        over all stages) and the row's place in the training data."""
        own = derive_stream(keys, f"augment/{name}", step)
        replica = torch.arange(len(keys), device=rows.device)[:, None].expand(rows.shape)
        return cls(mix_bits(own[:, None] + (rows + 1) * _ODD).flatten(), replica.flatten(), hyperparameters)

    def __len__(self) -> int:
        return len(self.keys)

    def picked(self, which: Tensor) -> Draws:
        """The draws of some of the rows."""
        return Draws(self.keys[which], self.replica[which], self.hyperparameters)

    def named(self, name: str) -> Draws:
        """Independent draws for the same rows."""
        return Draws(derive_stream(self.keys, name), self.replica, self.hyperparameters)

    def setting(self, name: str) -> Any:
        """A setting: of each row, (B,), where it is a float; else its plain value."""
        value = self.hyperparameters[name]
        return value[self.replica] if isinstance(value, Tensor) else value

    def uniform(
        self, name: str, low: float | Tensor = 0.0, high: float | Tensor = 1.0, shape: Sequence[int] = ()
    ) -> Tensor:
        """Uniform on [low, high), (B, *shape) float64."""
        return low + (high - low) * draw_uniform(derive_stream(self.keys, name), shape, torch.float64)

    def chance(self, name: str, probability: float | Tensor) -> Tensor:
        """True with this probability, (B,)."""
        return self.uniform(name) < probability

    def below(self, name: str, count: int | Tensor) -> Tensor:
        """A whole number from 0 to count - 1, (B,) int64."""
        return (self.uniform(name) * count).long()

    def order(self, name: str, count: int) -> Tensor:
        """A random order of 0 .. count - 1, (B, count) int64."""
        return draw_permutations(derive_stream(self.keys, name), count)
