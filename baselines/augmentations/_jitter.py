"""Colour jitter: brightness, contrast, saturation and hue changed at random, in random order."""

from __future__ import annotations

import torch
from torch import Tensor

from ._draws import Draws
from ._pictures import brightness, colour, contrast, hue


def factors(draws: Draws, strength: Tensor | float) -> tuple[Tensor, ...]:
    """Factors of brightness, contrast and saturation, uniform within 1 - strength (0 at least) and 1 + strength, and a
    turn of the hue within strength either way (half a circle at most), (B,) each: torchvision's ColorJitter."""
    most = torch.as_tensor(strength, dtype=torch.float64, device=draws.keys.device)
    three = (
        draws.uniform(name, (1 - most).clamp(min=0), 1 + most) for name in ("brightness", "contrast", "saturation")
    )
    return (*three, draws.uniform("hue", -most.clamp(max=0.5), most.clamp(max=0.5)))


def jittered(x: Tensor, draws: Draws, strength: Tensor | float) -> Tensor:
    given = factors(draws, strength)
    order = draws.order("order", len(given))
    for turn in range(len(given)):
        which = order[:, turn]
        found = x.clone()
        for number, operation in enumerate((brightness, contrast, colour, hue)):
            own = (which == number).nonzero()[:, 0]
            if len(own):
                found[own] = operation(x[own], given[number][own])
        x = found
    return x
