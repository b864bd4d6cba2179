"""RandAugment: some of fourteen operations in sequence, all at one magnitude.

Cubuk, Zoph, Shlens and Le, NeurIPS 2020 (arXiv:1909.13719): the operations are those of its section 3, each drawn with
the same probability; the magnitude is on AutoAugment's scale from 0 to 10 (Cubuk et al., CVPR 2019, arXiv:1805.09501,
table 6: shears up to 0.3, shifts up to 150 of 331 pixels, turns up to 30 degrees, 8 to 4 bits, thresholds from 256 to
0, factors up to 0.9 from 1). Every operation grows with the magnitude here; those with a direction take either one at
random. Nearest pixels; black where an image is moved.
"""

from typing import Any

import torch
from torch import Tensor

from ._draws import Draws
from ._images import (
    adjust_brightness,
    adjust_colour,
    adjust_contrast,
    adjust_sharpness,
    apply_affine,
    apply_operations,
    equalise_histogram,
    posterise_images,
    rotate_images,
    solarise_images,
    stretch_contrast,
)

READS = "colours"
SETTINGS: dict[str, Any] = {"operations": 2, "magnitude": 9.0}
"""operations: how many for each image, N of the paper. magnitude: M, from 0 to 10. The defaults are the paper's for
ResNet-50 on ImageNet."""


def compute_strength(draws: Draws) -> Tensor:
    """The magnitude as a share of the largest, (B,)."""
    return draws.setting("magnitude").double().clamp(0, 10) / 10


def draw_signed_magnitude(draws: Draws, most: float) -> Tensor:
    """The magnitude's share of `most`, with a random sign."""
    share = compute_strength(draws) * most
    return torch.where(draws.chance("direction", 0.5), share, -share)


OPERATIONS = (
    lambda x, draws: x,
    lambda x, draws: stretch_contrast(x),
    lambda x, draws: equalise_histogram(x),
    lambda x, draws: rotate_images(x, draw_signed_magnitude(draws, 30)),
    lambda x, draws: solarise_images(x, 256 * (1 - compute_strength(draws))),
    lambda x, draws: adjust_colour(x, 1 + draw_signed_magnitude(draws, 0.9)),
    lambda x, draws: posterise_images(x, 8 - (4 * compute_strength(draws)).round().long()),
    lambda x, draws: adjust_contrast(x, 1 + draw_signed_magnitude(draws, 0.9)),
    lambda x, draws: adjust_brightness(x, 1 + draw_signed_magnitude(draws, 0.9)),
    lambda x, draws: adjust_sharpness(x, 1 + draw_signed_magnitude(draws, 0.9)),
    lambda x, draws: apply_affine(x, 1, draw_signed_magnitude(draws, 0.3), 0, 0, 1, 0),
    lambda x, draws: apply_affine(x, 1, 0, 0, draw_signed_magnitude(draws, 0.3), 1, 0),
    lambda x, draws: apply_affine(x, 1, 0, x.shape[-1] * draw_signed_magnitude(draws, 150 / 331), 0, 1, 0),
    lambda x, draws: apply_affine(x, 1, 0, 0, 0, 1, x.shape[-2] * draw_signed_magnitude(draws, 150 / 331)),
)
"""In the paper's order."""


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment images (B, 1 or 3, height, width)."""
    for turn in range(draws.setting("operations")):
        own = draws.named(f"operation {turn}")
        x = apply_operations(x, own.below("operation", len(OPERATIONS)), OPERATIONS, own)
    return x
