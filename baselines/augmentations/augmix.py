"""AugMix: an image is mixed with a mixture of chains of operations on it.

    m x + (1 - m) sum_i w_i chain_i(x),   w ~ Dirichlet(1, .., 1),   m ~ Beta(1, 1)

Hendrycks, Mu, Cubuk, Zoph, Gilmer and Lakshminarayanan, ICLR 2020 (arXiv:1912.02781), algorithm 1. Three chains of one
to three operations each; the operations and how their levels are drawn are those of the released augmentations.py, in
which none overlaps with the corruptions of ImageNet-C. The paper's consistency loss is the algorithm `augmix`.
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
    broadcast_to_images,
    equalise_histogram,
    posterise_images,
    rotate_images,
    solarise_images,
    stretch_contrast,
)

READS = "colours"
SETTINGS: dict[str, Any] = {"chains": 3, "chain_depth": 0, "severity": 3.0, "all_operations": False}
"""chains: number of mixed chains. chain_depth: operations in each; 0 for one to three, at random. severity: the largest
level that is drawn, from 0.1 to 10. all_operations: also colour, contrast, brightness and sharpness, which overlap with
ImageNet-C."""

DEPTH = 3


def draw_level(draws: Draws, most: float) -> Tensor:
    """A level between 0.1 and the severity, as a share of `most`, (B,)."""
    return draws.uniform("level", 0.1, draws.setting("severity").double()) * most / 10


def draw_integer_level(draws: Draws, most: float) -> Tensor:
    return draw_level(draws, most).trunc()


def randomise_sign(draws: Draws, magnitude: Tensor) -> Tensor:
    return torch.where(draws.chance("direction", 0.5), magnitude, -magnitude)


OPERATIONS = (
    lambda x, draws: stretch_contrast(x),
    lambda x, draws: equalise_histogram(x),
    lambda x, draws: posterise_images(x, 4 - draw_integer_level(draws, 4).long()),
    lambda x, draws: rotate_images(x, randomise_sign(draws, draw_integer_level(draws, 30)), smooth=True),
    lambda x, draws: solarise_images(x, 256 - draw_integer_level(draws, 256)),
    lambda x, draws: apply_affine(x, 1, randomise_sign(draws, draw_level(draws, 0.3)), 0, 0, 1, 0, smooth=True),
    lambda x, draws: apply_affine(x, 1, 0, 0, randomise_sign(draws, draw_level(draws, 0.3)), 1, 0, smooth=True),
    lambda x, draws: apply_affine(
        x, 1, 0, randomise_sign(draws, draw_integer_level(draws, x.shape[-1] / 3)), 0, 1, 0, smooth=True
    ),
    lambda x, draws: apply_affine(
        x, 1, 0, 0, 0, 1, randomise_sign(draws, draw_integer_level(draws, x.shape[-2] / 3)), smooth=True
    ),
)
OVERLAPPING = (
    lambda x, draws: adjust_colour(x, draw_level(draws, 1.8) + 0.1),
    lambda x, draws: adjust_contrast(x, draw_level(draws, 1.8) + 0.1),
    lambda x, draws: adjust_brightness(x, draw_level(draws, 1.8) + 0.1),
    lambda x, draws: adjust_sharpness(x, draw_level(draws, 1.8) + 0.1),
)


def draw_chain_weights(draws: Draws, chains: int) -> Tensor:
    """The weight of each chain, uniform among weights that sum to 1, (B, chains)."""
    drawn = -torch.log1p(-draws.uniform("weights", shape=(chains,)))
    return drawn / drawn.sum(1, keepdim=True)


def changed(x: Tensor, draws: Draws) -> Tensor:
    """Augment images (B, 1 or 3, height, width)."""
    chains, fixed = draws.setting("chains"), draws.setting("chain_depth")
    operations = (*OPERATIONS, *OVERLAPPING) if draws.setting("all_operations") else OPERATIONS
    share = draw_chain_weights(draws, chains)
    mixture = torch.zeros_like(x)
    for chain in range(chains):
        own = draws.named(f"chain {chain}")
        depth = own.below("depth", DEPTH) + 1
        images = x
        for turn in range(fixed or DEPTH):
            at = own.named(f"operation {turn}")
            which = at.below("operation", len(operations))
            # The index after the last operation is no operation.
            which = which if fixed else torch.where(turn < depth, which, len(operations))
            images = apply_operations(images, which, operations, at)
        mixture += broadcast_to_images(share[:, chain], x) * images
    image_share = broadcast_to_images(draws.uniform("kept"), x)
    return image_share * x + (1 - image_share) * mixture
