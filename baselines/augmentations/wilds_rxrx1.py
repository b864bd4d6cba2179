"""WILDS' augmentation of cell images: a rotation by 0, 90, 180 or 270 degrees, and a flip.

The transform `rxrx1` of examples/transforms.py of Koh et al., WILDS, ICML 2021 (arXiv:2012.07421), without the
standardising of each image that follows there in training and in testing alike.
"""

from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ._draws import Draws
from ._images import flip_images

READS = "images"
SETTINGS: dict[str, Any] = {}


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment square images (B, channels, side, side); `ModelError` for others."""
    if x.shape[-2] != x.shape[-1]:
        raise ModelError(
            f"augmentation wilds_rxrx1: it needs square images, and these are {x.shape[-2]} x {x.shape[-1]}"
        )
    quarters = draws.below("quarters", 4).view(-1, 1, 1, 1)
    images = x
    for turn in (1, 2, 3):
        images = torch.where(quarters == turn, x.rot90(turn, (2, 3)), images)
    return flip_images(images, draws.chance("flip", 0.5))
