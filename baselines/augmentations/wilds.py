"""WILDS' weak augmentation: a flip, and a random crop if images are stored larger than the training size.

Sagawa et al., Extending the WILDS Benchmark for Unsupervised Adaptation, ICLR 2022 (arXiv:2112.05090); the transform
`weak` of its examples/transforms.py. WILDS' images are trained at their stored size, so that a window is the whole
image; DomainNet's are stored at 256 / 224 of it: `wilds_crop = 0.875` crops that share of the image at the training
size, and enlarges it. (Koh et al., ICML 2021, train without augmentation except for `wilds_rxrx1`.)
"""

from typing import Any

from torch import Tensor

from ._draws import Draws
from ._images import crop_images, flip_images

READS = "images"
SETTINGS: dict[str, Any] = {"wilds_crop": 1.0}
"""wilds_crop: the side of a window as a share of the image's."""


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment images (B, channels, height, width)."""
    x = flip_images(x, draws.chance("flip", 0.5))
    share = draws.setting("wilds_crop")
    height, width = ((share * side).round().long().clamp(1, side) for side in x.shape[-2:])
    top, left = draws.below("top", x.shape[-2] - height + 1), draws.below("left", x.shape[-1] - width + 1)
    return crop_images(x, top, left, height, width)
