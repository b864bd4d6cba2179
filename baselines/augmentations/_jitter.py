"""Colour jitter: brightness, contrast, saturation and hue changed at random, in random order."""

from __future__ import annotations

import torch
from torch import Tensor

from ._draws import Draws
from ._images import adjust_brightness, adjust_colour, adjust_contrast, adjust_hue


def draw_factors(draws: Draws, strength: Tensor | float) -> tuple[Tensor, ...]:
    """Factors of brightness, contrast and saturation, uniform within 1 - strength (0 at least) and 1 + strength, and a
    turn of the hue within strength either way (half a circle at most), (B,) each: torchvision's ColorJitter."""
    most = torch.as_tensor(strength, dtype=torch.float64, device=draws.keys.device)
    three = (
        draws.uniform(name, (1 - most).clamp(min=0), 1 + most) for name in ("brightness", "contrast", "saturation")
    )
    return (*three, draws.uniform("hue", -most.clamp(max=0.5), most.clamp(max=0.5)))


def jitter_colours(x: Tensor, draws: Draws, strength: Tensor | float) -> Tensor:
    given = draw_factors(draws, strength)
    order = draws.order("order", len(given))
    for turn in range(len(given)):
        which = order[:, turn]
        result = x.clone()
        for number, operation in enumerate((adjust_brightness, adjust_contrast, adjust_colour, adjust_hue)):
            own = (which == number).nonzero()[:, 0]
            if len(own):
                result[own] = operation(x[own], given[number][own])
        x = result
    return x
