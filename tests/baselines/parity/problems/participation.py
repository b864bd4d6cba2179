"""Inverse participation ratios of made-up weights: waves, noise, and what lies between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from farshift.baselines.algorithms.ipr_pruning import compute_participation_ratio
from torch import Tensor

from .. import toy


def weights() -> Tensor:
    """Of five neurons from 31 values, (5, 31): the later, the less of a wave."""
    wave = torch.cos(2 * torch.pi * 3 * torch.arange(31, dtype=torch.float64) / 31)
    share = torch.linspace(0, 1, 5, dtype=torch.float64)[:, None]
    return (1 - share) * wave + share * toy.wave((5, 31), 0.3)


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`ratios` (5)."""
    return {"ratios": compute_participation_ratio(weights()).tolist()}
