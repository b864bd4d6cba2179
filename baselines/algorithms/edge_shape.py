"""Shape bias: training on images and their edge maps, whose predictions are averaged.

    min  [CE(f(x), y) + w CE(f(e(x)), y)] / 2;   prediction: [softmax f(x) + softmax f(e(x))] / 2

e(x) is Canny's edge map, given as an image like x, and w its weight. Efthymiadis et al., WACV 2025: its thin binary
edges as a second domain, in training and prediction, from one detector; the authors search w from 0 to 1, beside the
learning rate, by validation on crafted shifts (the selection rule `crafted_shift`). Its augmentations are not part of
this.

Not compared with released code: the released code trains with its own augmentations, which are not implemented here.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.images import find_channel_axis, unflatten_images
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState

KIND = "domain"
CITATION = (
    "Efthymiadis et al., Crafting distribution shifts for validation and training in single source domain "
    "generalization, WACV 2025 (arXiv:2409.19774)"
)
SETTINGS: dict[str, Any] = {"shape_weight": 1.0}
"""shape_weight: of the loss on edge maps (their `method_loss`)."""
SEARCH: dict[str, Any] = {"shape_weight": ["uniform", 0.0, 1.0]}

ROWS = 1024
"""Images whose edges are detected at once."""

SIGMA, LOW, HIGH = 1.0, 0.1, 0.2
"""The Gaussian's width in pixels, and the two thresholds of the Sobel gradient's size for pixels in 0 .. 1: as
scikit-image's defaults."""


class _EdgeMaps:
    """The training rows' edge maps, (N, pixels), which all copies of the algorithm share."""

    def __init__(self, flat: Tensor) -> None:
        self.flat = flat

    def __deepcopy__(self, _: Any) -> _EdgeMaps:
        return self


class Algorithm(BaseAlgorithm):
    additive = True

    def set_up(self) -> None:
        self.shape = self.about.sizes.shape
        if not self.shape:
            raise ModelError("edge_shape needs images: one numeric input of two or three axes, and no other")
        numbers = self.about.data.inputs[1]
        self.maps = _EdgeMaps(torch.cat([self.drawn(some) for some in torch.split(numbers, ROWS)]))

    def drawn(self, numbers: Tensor) -> Tensor:
        """Flat images (.., pixels) as flat edge maps, the same in every channel."""
        image = unflatten_images(numbers, self.shape)
        grey = image.mean(-3)
        edge_maps = detect_edges(grey.flatten(0, -3)).view_as(grey).unsqueeze(-3).expand_as(image)
        axis = find_channel_axis(self.shape)
        back = edge_maps.squeeze(-3) if axis is None else edge_maps.movedim(-3, axis - 3)
        return back.flatten(-len(self.shape))

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        categories, numbers = batch.inputs
        risks = [
            average_over_batch(cross_entropy(network(categories, seen), batch.target), batch)
            for seen in (numbers, self.maps.flat[batch.rows])
        ]
        both: Tensor = risks[0] + self.hyperparameters["shape_weight"] * risks[1]
        return both / 2

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        """The logarithms of the averaged probabilities, (K, n, classes)."""
        categories, numbers = inputs
        each = [network(categories, seen).log_softmax(-1) for seen in (numbers, self.drawn(numbers))]
        return torch.logaddexp(each[0], each[1]) - math.log(2)


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
