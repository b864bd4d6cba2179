"""Random windows of images, of random areas and aspect ratios (Szegedy et al., CVPR 2015, arXiv:1409.4842)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._draws import Draws
from ._images import crop_images

RATIO = (3 / 4, 4 / 3)
TRIES = 10


def draw_windows(
    draws: Draws, size: tuple[int, int], least: Tensor | float, most: Tensor | float = 1.0
) -> tuple[Tensor, ...]:
    """Top, left, height and width of a window in each image of this height and width, (B,) int64 each. Its area is
    uniform between two shares of the image's, the logarithm of its aspect ratio uniform between those of 3/4 and 4/3;
    the first of ten that fits is used, and the whole image if none does: torchvision's RandomResizedCrop."""
    height, width = size
    low = torch.as_tensor(least, dtype=torch.float64, device=draws.keys.device).view(-1, 1)
    high = torch.as_tensor(most, dtype=torch.float64, device=draws.keys.device).view(-1, 1)
    area = height * width * draws.uniform("area", low, high, (TRIES,))
    ratio = draws.uniform("ratio", math.log(RATIO[0]), math.log(RATIO[1]), (TRIES,)).exp()
    wide, tall = (area * ratio).sqrt().round().long(), (area / ratio).sqrt().round().long()
    fits = (wide > 0) & (wide <= width) & (tall > 0) & (tall <= height)
    first = fits.long().argmax(1, keepdim=True)
    some = fits.any(1)
    tall = torch.where(some, tall.gather(1, first)[:, 0], height)
    wide = torch.where(some, wide.gather(1, first)[:, 0], width)
    return draws.below("top", height - tall + 1), draws.below("left", width - wide + 1), tall, wide


def crop_randomly(x: Tensor, draws: Draws, least: Tensor | float) -> Tensor:
    """Crop a random window (`draw_windows`) of each image and resize it to the image's size."""
    height, width = x.shape[-2:]
    return crop_images(x, *draw_windows(draws, (height, width), least))
