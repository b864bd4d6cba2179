"""RandAugment: some of fourteen operations one after the other, all at one magnitude.

Cubuk, Zoph, Shlens and Le, NeurIPS 2020 (arXiv:1909.13719): the operations are those of its section 3, each drawn with
the same probability; the magnitude is on AutoAugment's scale from 0 to 10 (Cubuk et al., CVPR 2019, arXiv:1805.09501,
table 6: shears up to 0.3, shifts up to 150 of 331 pixels, turns up to 30 degrees, 8 to 4 bits, thresholds from 256 to
0, factors up to 0.9 from 1). Every operation grows with the magnitude here; those with a direction take either one at
random. Nearest pixels; black where a picture is moved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._draws import Draws
from ._levels import equalised, posterised, solarised, stretched
from ._pictures import brightness, colour, contrast, each, moved, rotated, sharpness

READS = "colours"
SETTINGS: dict[str, Any] = {"operations": 2, "magnitude": 9.0}
"""operations: how many for each picture, N of the paper. magnitude: M, from 0 to 10. The defaults are the paper's for
ResNet-50 on ImageNet."""


def strength(draws: Draws) -> Tensor:
    """The magnitude as a share of the largest, (B,)."""
    found: Tensor = draws.setting("magnitude").double().clamp(0, 10) / 10
    return found


def either(draws: Draws, most: float) -> Tensor:
    """The magnitude's share of `most`, or as much the other way."""
    share = strength(draws) * most
    return torch.where(draws.chance("direction", 0.5), share, -share)


OPERATIONS = (
    lambda x, draws: x,
    lambda x, draws: stretched(x),
    lambda x, draws: equalised(x),
    lambda x, draws: rotated(x, either(draws, 30)),
    lambda x, draws: solarised(x, 256 * (1 - strength(draws))),
    lambda x, draws: colour(x, 1 + either(draws, 0.9)),
    lambda x, draws: posterised(x, 8 - (4 * strength(draws)).round().long()),
    lambda x, draws: contrast(x, 1 + either(draws, 0.9)),
    lambda x, draws: brightness(x, 1 + either(draws, 0.9)),
    lambda x, draws: sharpness(x, 1 + either(draws, 0.9)),
    lambda x, draws: moved(x, 1, either(draws, 0.3), 0, 0, 1, 0),
    lambda x, draws: moved(x, 1, 0, 0, either(draws, 0.3), 1, 0),
    lambda x, draws: moved(x, 1, 0, x.shape[-1] * either(draws, 150 / 331), 0, 1, 0),
    lambda x, draws: moved(x, 1, 0, 0, 0, 1, x.shape[-2] * either(draws, 150 / 331)),
)
"""In the paper's order."""


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Pictures (B, 1 or 3, height, width) anew."""
    for turn in range(draws.setting("operations")):
        own = draws.named(f"operation {turn}")
        x = each(x, own.below("operation", len(OPERATIONS)), OPERATIONS, own)
    return x
