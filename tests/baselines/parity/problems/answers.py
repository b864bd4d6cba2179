"""What an algorithm that trains nothing more answers to three batches of other rows, one after the other, from the toy's
weights, after it has seen the toy's rows as those that it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .. import toy
from .steps import training

BATCHES = (2.0, 3.1, 4.7)
"""Phases of the batches of rows that are asked."""


def asked() -> list[Tensor]:
    """The batches, (18, INPUTS) each."""
    return [toy.inputs(phase) for phase in BATCHES]


def shares(scores: Tensor) -> list[list[float]]:
    """Scores of rows (.., n, classes) as their shares of 1."""
    result: list[list[float]] = (scores / scores.sum(-1, keepdim=True)).detach().reshape(-1, scores.shape[-1]).tolist()
    return result


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`first`, `second` and `third`: the probabilities of the rows of each batch."""
    built = training(name, settings)
    stack = built.stack
    stack.network.eval()
    stack.rng.silent = True
    stack.algorithm.finish(stack.network, built.data, stack.answer)
    result = {}
    for position, x in zip(("first", "second", "third"), asked(), strict=True):
        nothing = torch.zeros(1, len(x), 0, dtype=torch.int64)
        with torch.no_grad():
            result[position] = shares(stack.algorithm.logits(stack.network, nothing, x[None]).softmax(-1))
    return result
