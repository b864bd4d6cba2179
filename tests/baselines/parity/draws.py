"""What our algorithms draw on the toy, for drivers to give released code the same."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from farshift.baselines.replicas.rng import derive_stream, draw_beta, draw_permutations, draw_uniform, make_keys
from torch import Tensor

NAME = "parity"
"""The name of the toy's one replica, which seeds what it draws."""


def at(draw: str, step: int) -> Tensor:
    """The key of one draw of a step, (1,)."""
    return derive_stream(make_keys([NAME]), draw, step)


def order(draw: str, step: int, count: int) -> Tensor:
    """A permutation of 0 .. count - 1."""
    return draw_permutations(at(draw, step), count)[0]


def shares(draw: str, step: int, alpha: float, count: int = 1) -> list[float]:
    """Draws from Beta(alpha, alpha)."""
    result: list[float] = draw_beta(at(draw, step), (count,), alpha)[0].tolist()
    return result


def even(draw: str, step: int, shape: tuple[int, ...]) -> Tensor:
    """Uniform numbers from 0 to 1."""
    return draw_uniform(at(draw, step), shape, torch.float64)[0]


def dealt(values: Iterable[Any]) -> Callable[..., Any]:
    """A function in place of a random one, which gives these values in turn, whatever it is asked for."""
    turns: Iterator[Any] = iter(values)
    return lambda *_, **__: next(turns)
