"""Random flips and crops: the usual augmentation of images of 32 pixels.

Four black pixels are put around an image of 32, a window of its size is cut there, and it is flipped one time in two
(He, Zhang, Ren and Sun, CVPR 2016, arXiv:1512.03385, section 4.2; before AugMix's own in its released cifar.py).
"""

from typing import Any

from torch import Tensor

from ._draws import Draws
from ._images import apply_affine, flip_images

READS = "images"
SETTINGS: dict[str, Any] = {"shift": 0.125}
"""shift: the largest shift of an image along each axis, as a share of its side, in whole pixels."""


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment images (B, channels, height, width)."""
    down, across = (
        draws.below(name, 2 * most + 1) - most
        for name, most in (
            ("down", (draws.setting("shift") * x.shape[-2]).round().long()),
            ("across", (draws.setting("shift") * x.shape[-1]).round().long()),
        )
    )
    return apply_affine(flip_images(x, draws.chance("flip", 0.5)), 1, 0, across, 0, 1, down)
