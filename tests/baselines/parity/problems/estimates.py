"""What EIIL and BBSE read from a plain network's answers, over made-up ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from farshift.baselines.algorithms.bbse import estimate_class_ratios
from farshift.baselines.algorithms.eiil import optimise_assignment
from farshift.baselines.algorithms.irm import compute_slopes
from torch import Tensor

from .. import toy


def scores() -> tuple[Tensor, Tensor, Tensor]:
    """The score of class 1 above class 0 of 24 rows, their labels, and where their shares begin."""
    labels = torch.arange(24) % 3 % 2
    return 2 * toy.wave((24,), 0.2), labels, 0.5 * toy.wave((24,), 1.9)


def predictions() -> tuple[Tensor, Tensor, Tensor]:
    """Predicted classes and labels of 40 validation rows, and predicted classes of 25 shifted ones, of three."""
    position = torch.arange(40)
    labels = position % 3
    return torch.where(position % 5 == 0, (labels + 1) % 3, labels), labels, (torch.arange(25) % 7) % 3


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """EIIL's `shares` as logits after its steps; BBSE's `estimate_class_ratios`."""
    if algorithm == "bbse":
        predicted, labels, shifted = predictions()
        return {"ratios": estimate_class_ratios(predicted[None], labels, shifted[None], 3)[0].tolist()}
    score, labels, start = scores()
    slope = compute_slopes(torch.stack([torch.zeros_like(score), score], dim=-1)[None], labels[None])
    rate = torch.tensor([settings["rate"]], dtype=torch.float64)
    return {"shares": optimise_assignment(slope, start[None], settings["steps"], rate)[0].tolist()}
