"""Edge maps of images: Canny's detector, as tensor operations."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

SIGMA, LOW, HIGH = 1.0, 0.1, 0.2
"""The Gaussian's width in pixels, and the two thresholds of the Sobel gradient's size for pixels in 0 .. 1: as
scikit-image's defaults."""


def detect_edges(images: Tensor) -> Tensor:
    """1 where a pixel is an edge's and 0 elsewhere, for images (n, H, W) of pixels in 0 .. 1.

    Canny, IEEE TPAMI 1986: the gradient of the smoothed image, thinned to its ridges; of these, the parts above `HIGH`,
    and those above `LOW` that are connected to one above `HIGH`. Outside an image its border is repeated."""
    across, down = _compute_gradient(_smooth_images(images))
    size = (across.square() + down.square()).sqrt()
    ridge = _suppress_non_maxima(size, across, down)
    faint = ridge & (size > LOW)
    return _connect_edges(ridge & (size > HIGH), faint).to(images.dtype)


def _smooth_images(images: Tensor) -> Tensor:
    reach = math.ceil(3 * SIGMA)
    places = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
    bell = torch.exp(-places.square() / (2 * SIGMA**2))
    return _apply_separable_filter(images, bell / bell.sum(), bell / bell.sum())


def _compute_gradient(images: Tensor) -> tuple[Tensor, Tensor]:
    """Sobel's differences to the right and down."""
    slope, weight = (images.new_tensor(values) for values in ([-1.0, 0.0, 1.0], [1.0, 2.0, 1.0]))
    return _apply_separable_filter(images, weight, slope), _apply_separable_filter(images, slope, weight)


def _apply_separable_filter(images: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Correlation with the outer product of two filters of one odd length."""
    reach = len(down) // 2
    padded = F.pad(images[:, None], (reach,) * 4, mode="replicate")
    return F.conv2d(F.conv2d(padded, down.view(1, 1, -1, 1)), across.view(1, 1, 1, -1))[:, 0]


def _suppress_non_maxima(size: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Where the gradient is larger than its neighbour behind and not smaller than the one ahead, along its direction
    rounded to a multiple of 45 degrees."""
    sector = (torch.atan2(down, across) / (math.pi / 4)).round().long() % 4
    height, width = size.shape[1:]
    padded = F.pad(size, (1, 1, 1, 1))
    is_maximum = torch.zeros_like(size, dtype=torch.bool)
    for number, (row, column) in enumerate(((0, 1), (1, 1), (1, 0), (1, -1))):
        ahead = padded[:, 1 + row : 1 + row + height, 1 + column : 1 + column + width]
        behind = padded[:, 1 - row : 1 - row + height, 1 - column : 1 - column + width]
        is_maximum |= (sector == number) & (size > behind) & (size >= ahead)
    return is_maximum


def _connect_edges(sure: Tensor, faint: Tensor) -> Tensor:
    """The pixels of `faint` that are connected to `sure` ones, diagonals included."""
    while True:
        grown = (F.max_pool2d(sure[:, None].float(), 3, stride=1, padding=1)[:, 0] > 0) & faint
        if torch.equal(grown, sure):
            return sure
        sure = grown
