"""How far groups of low-rank updates to two weights are from orthogonal, and the gradient of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from farshift.baselines.algorithms.pego import compute_overlap
from torch import Tensor

from .. import toy

SIDE, RANK = 4, 2


def weights() -> list[Tensor]:
    """Of queries and of values, (SIDE, SIDE) each."""
    return [toy.wave((SIDE, SIDE), phase) for phase in (0.3, 1.4)]


def updates(groups: int) -> list[tuple[Tensor, Tensor]]:
    """For each of the weights what all groups' updates are made of: down (ranks, SIDE) and up (SIDE, ranks)."""
    ranks = groups * RANK
    return [(toy.wave((ranks, SIDE), 2.0 + at), toy.wave((SIDE, ranks), 4.0 + at)) for at in range(2)]


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`compute_overlap`: its value, then its gradient by down and up of the first and of the second weight."""
    total, parameters = torch.zeros(1, dtype=torch.float64), []
    for weight, pair in zip(weights(), updates(settings["groups"]), strict=True):
        down, up = (torch.nn.Parameter(part[None]) for part in pair)
        total = total + compute_overlap(weight[None], down, up, settings["groups"])
        parameters += [down, up]
    return {"overlap": toy.loss_and_gradient(settings["orthogonality"] * total, parameters)}
