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
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.images import find_channel_axis, unflatten_images
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._canny import detect_edges

KIND = "domain"
CITATION = (
    "Efthymiadis et al., Crafting distribution shifts for validation and training in single source domain "
    "generalization, WACV 2025 (arXiv:2409.19774)"
)
TASKS = ("classification",)
TOUCHES = ("train",)
SETTINGS: dict[str, Any] = {"shape_weight": 1.0}
"""shape_weight: of the loss on edge maps (their `method_loss`)."""
SEARCH: dict[str, Any] = {"shape_weight": ["uniform", 0.0, 1.0]}

ROWS = 1024
"""Images whose edges are detected at once."""


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
