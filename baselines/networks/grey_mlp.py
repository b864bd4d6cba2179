"""A multi-layer perceptron on greyscale images: the sum of the channels at each pixel.

On ColoredMNIST, where a digit is in one of two channels, it cannot know the colour: the oracle of Arjovsky, Bottou,
Gulrajani and Lopez-Paz, Invariant Risk Minimization, 2019 (arXiv:1907.02893), section 5.2.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from ..encoding.encoding import Sizes
from ..encoding.images import get_image_size, unflatten_images
from .mlp import Network as Perceptron

TASK = "classification"
READS = "images"
SETTINGS: dict[str, Any] = {"width": 128, "depth": 1, "dropout": 0.0}
"""See `mlp`."""


class Network(Perceptron):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        _, height, width = get_image_size(sizes.shape)
        super().__init__(replace(sizes, numbers=height * width, shape=(height, width)), settings)
        self.shape = sizes.shape

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Pixels (K, n, channels x height x width) to brightness, (K, n, height x width)."""
        return unflatten_images(numbers, self.shape).sum(dim=-3).flatten(-2)
