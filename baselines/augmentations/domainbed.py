"""DomainBed's augmentation: a random crop of at least 0.7 of the image, horizontal flips, colour jitter, and greyscale
with probability 0.1.

Gulrajani and Lopez-Paz, In Search of Lost Domain Generalization, ICLR 2021 (arXiv:2007.01434), appendix B; the
transforms and their order are those of `MultipleEnvironmentImageFolder` in its domainbed/datasets.py. There a window is
cut from the file's image; here, as DomainBed does it with WILDS' images, from the image at the network's size.
"""

import math
from typing import Any

import torch
from torch import Tensor

from ._draws import Draws
from ._images import (
    adjust_brightness,
    adjust_colour,
    adjust_contrast,
    adjust_hue,
    crop_images,
    flip_images,
    to_grey,
)

READS = "colours"
SETTINGS: dict[str, Any] = {"crop_least": 0.7, "jitter": 0.3, "grey_chance": 0.1}
"""crop_least: the least share of an image's area in the window. jitter: the largest change of brightness, contrast,
saturation and hue (of a circle). grey_chance: the probability that an image is made grey."""


RATIO = (3 / 4, 4 / 3)
TRIES = 10
"""Of random windows (Szegedy et al., CVPR 2015, arXiv:1409.4842): their aspect ratios, and how many are tried."""


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


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment images (B, 1 or 3, height, width)."""
    x = crop_randomly(x, draws, draws.setting("crop_least"))
    x = flip_images(x, draws.chance("flip", 0.5))
    x = jitter_colours(x, draws.named("jitter"), draws.setting("jitter"))
    colourless = draws.chance("grey", draws.setting("grey_chance"))
    return torch.where(colourless.view(-1, 1, 1, 1), to_grey(x).expand_as(x), x)
