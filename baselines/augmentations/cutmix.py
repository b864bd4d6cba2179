"""CutMix: a rectangle of each image is replaced by that of another one, and its label by the same share.

Yun, Han, Oh, Chun, Choe and Yoo, ICCV 2019 (arXiv:1905.04899), algorithm A1: the rectangle has the image's aspect and
1 - l of its area, l ~ Beta(alpha, alpha), about a uniform centre; the part outside the image is cut off, and the
labels' shares are the visible areas. One rectangle for all images of a batch, and partners by a permutation of
it, as the authors' code.
"""

from typing import Any

import torch
from torch import Tensor

from ._draws import Draws
from .mixup import draw_beta_shares, draw_partners

READS = "images"
SETTINGS: dict[str, Any] = {"cutmix_alpha": 1.0, "cutmix_chance": 1.0}
"""cutmix_alpha: above 0; 1 is the paper's. cutmix_chance: the probability that a batch is mixed, 1 for ImageNet and 0.5
for CIFAR in the authors' code."""


def draw_rectangle(draws: Draws, height: int, width: int) -> tuple[Tensor, ...]:
    """Top, left, bottom and right of each replica's rectangle, (K,) int64; empty where a batch is not mixed."""
    side = (1 - draw_beta_shares(draws, "cutmix_alpha")).sqrt()
    side = torch.where(draws.chance("mixed", draws.setting("cutmix_chance")), side, 0.0)
    ranges = []
    for name, size in (("middle y", height), ("middle x", width)):
        long, middle = (side * size).long(), draws.below(name, size)
        ranges.append(((middle - long // 2).clamp(0, size), (middle + long // 2).clamp(0, size)))
    (top, bottom), (left, right) = ranges
    return top, left, bottom, right


def mixed(x: Tensor, draws: Draws) -> tuple[Tensor, Tensor, Tensor]:
    """Mix images (K, n, channels, height, width), one draw per replica: mixed images, partners and shares (K, n)."""
    height, width = x.shape[-2:]
    partner, other = draw_partners(x, draws)
    top, left, bottom, right = (edge.view(-1, 1, 1, 1, 1) for edge in draw_rectangle(draws, height, width))
    v = torch.arange(height, device=x.device).view(-1, 1)
    u = torch.arange(width, device=x.device)
    inside = (v >= top) & (v < bottom) & (u >= left) & (u < right)
    share = 1 - ((bottom - top) * (right - left)).double().flatten() / (height * width)
    return torch.where(inside, other, x), partner, share[:, None].expand(partner.shape)
