"""WILDS' strong augmentation: a flip, a crop, two random operations of fourteen, and a cutout.

The transform `randaugment` of examples/transforms.py of Sagawa et al., ICLR 2022 (arXiv:2112.05090), which their
supervised networks with augmentation and their adapted ones are trained with: RandAugment with magnitudes drawn for
each operation from FixMatch's ranges (Sohn et al., NeurIPS 2020, arXiv:2001.07685, appendix), nearest pixels and black
where an image is moved; then Cutout with a side of up to half the image's.
"""

from typing import Any

import torch
from torch import Tensor

from . import wilds
from ._draws import Draws
from ._images import (
    adjust_brightness,
    adjust_colour,
    adjust_contrast,
    adjust_sharpness,
    apply_affine,
    apply_operations,
    equalise_histogram,
    erase_rectangles,
    posterise_images,
    rotate_images,
    solarise_images,
    stretch_contrast,
)

READS = "colours"
SETTINGS: dict[str, Any] = {"wilds_crop": 1.0, "wilds_operations": 2}
"""wilds_crop: as in `wilds`. wilds_operations: number of operations, `randaugment_n` there."""

FILL = (125 / 255, 123 / 255, 114 / 255)


def draw_level(draws: Draws, low: float, high: float) -> Tensor:
    return draws.uniform("level", low, high)


OPERATIONS = (
    lambda x, draws: stretch_contrast(x),
    lambda x, draws: adjust_brightness(x, draw_level(draws, 0.05, 0.95)),
    lambda x, draws: adjust_colour(x, draw_level(draws, 0.05, 0.95)),
    lambda x, draws: adjust_contrast(x, draw_level(draws, 0.05, 0.95)),
    lambda x, draws: equalise_histogram(x),
    lambda x, draws: x,
    lambda x, draws: posterise_images(x, draw_level(draws, 4, 8).long()),
    lambda x, draws: rotate_images(x, draw_level(draws, -30, 30)),
    lambda x, draws: adjust_sharpness(x, draw_level(draws, 0.05, 0.95)),
    lambda x, draws: apply_affine(x, 1, draw_level(draws, -0.3, 0.3), 0, 0, 1, 0),
    lambda x, draws: apply_affine(x, 1, 0, 0, draw_level(draws, -0.3, 0.3), 1, 0),
    lambda x, draws: solarise_images(x, draw_level(draws, 0, 256)),
    lambda x, draws: apply_affine(x, 1, 0, x.shape[-1] * draw_level(draws, -0.3, 0.3), 0, 1, 0),
    lambda x, draws: apply_affine(x, 1, 0, 0, 0, 1, x.shape[-2] * draw_level(draws, -0.3, 0.3)),
)
"""FixMatch's, in the order of WILDS' list."""


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment images (B, 1 or 3, height, width)."""
    x = wilds.changed(x, draws)
    for turn in range(draws.setting("wilds_operations")):
        own = draws.named(f"operation {turn}")
        x = apply_operations(x, own.below("operation", len(OPERATIONS)), OPERATIONS, own)
    return cut_out(x, draws)


def draw_rectangle(draws: Draws, height: int, width: int) -> tuple[Tensor, ...]:
    """Top, left, bottom and right of a square of a side of up to half the image's, about a uniform centre, (B,) each;
    the last row and column are excluded."""
    side = draws.uniform("side", 0, 0.5) * width
    left = (draws.uniform("middle x", 0, width) - side / 2).clamp(min=0).floor()
    top = (draws.uniform("middle y", 0, height) - side / 2).clamp(min=0).floor()
    right, bottom = (left + side).clamp(max=width), (top + side).clamp(max=height)
    # Pillow draws the pixels up to and including the one that contains the end.
    return top, left, bottom.floor() + 1, right.floor() + 1


def cut_out(x: Tensor, draws: Draws) -> Tensor:
    fill = torch.tensor(FILL) if x.shape[1] == 3 else torch.tensor([sum(FILL) / 3])
    top, left, bottom, right = draw_rectangle(draws, *x.shape[-2:])
    return erase_rectangles(x, top, left, bottom, right, fill.to(x.device))
