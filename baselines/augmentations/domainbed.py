"""DomainBed's augmentation: a random crop of at least 0.7 of the image, horizontal flips, colour jitter, and greyscale
with probability 0.1.

Gulrajani and Lopez-Paz, In Search of Lost Domain Generalization, ICLR 2021 (arXiv:2007.01434), appendix B; the
transforms and their order are those of `MultipleEnvironmentImageFolder` in its domainbed/datasets.py. There a window is
cut from the file's image; here, as DomainBed does it with WILDS' images, from the image at the network's size.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._draws import Draws
from ._images import flip_images, to_grey
from ._jitter import jitter_colours
from ._random_crop import crop_randomly

READS = "colours"
SETTINGS: dict[str, Any] = {"crop_least": 0.7, "jitter": 0.3, "grey_chance": 0.1}
"""crop_least: the least share of an image's area in the window. jitter: the largest change of brightness, contrast,
saturation and hue (of a circle). grey_chance: the probability that an image is made grey."""


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment images (B, 1 or 3, height, width)."""
    x = crop_randomly(x, draws, draws.setting("crop_least"))
    x = flip_images(x, draws.chance("flip", 0.5))
    x = jitter_colours(x, draws.named("jitter"), draws.setting("jitter"))
    colourless = draws.chance("grey", draws.setting("grey_chance"))
    return torch.where(colourless.view(-1, 1, 1, 1), to_grey(x).expand_as(x), x)
