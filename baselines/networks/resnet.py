"""A shallow residual network that trains fast: groups of pooled convolutions, each with a residual block.

He, Zhang, Ren and Sun, CVPR 2016 (arXiv:1512.03385); its order of convolution, pooling, normalisation and GELU, and its
initial filters that pass their inputs on, as Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024
(arXiv:2404.00498), without that paper's whitening and augmentation.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.encoding import Sizes
from ..encoding.images import get_image_size, unflatten_images
from ..layers.convolution import Conv2d, halve_by_max
from ..layers.linear import Linear
from ..layers.norm import BatchNorm
from . import RowNetwork

TASK = "classification"
READS = "images"
SETTINGS: dict[str, Any] = {"widths": [16, 32, 64], "activation": "gelu", "ghost": 0}
"""widths: channels of the first convolution, then of each group, which halves the image; features are as wide as the
last. activation: `gelu` or `relu`. ghost: rows of a ghost batch, by which larger batches are normalised (Hoffer et al.
2017: 128); 0 for whole batches."""

ACTIVATIONS: dict[str, type[nn.Module]] = {"gelu": nn.GELU, "relu": nn.ReLU}


class NormalisedConvolution(nn.Module):
    """A 3 x 3 convolution without bias, optional pooling, batch normalisation, activation."""

    def __init__(
        self, inputs: int, outputs: int, activation: type[nn.Module], ghost: int = 0, pooled: bool = False
    ) -> None:
        super().__init__()
        self.convolution = Conv2d(inputs, outputs, 3, bias=False)
        nn.init.dirac_(self.convolution.weight[0, : min(inputs, outputs)])
        self.norm = BatchNorm(outputs, ghost=ghost)
        self.activation, self.pooled = activation(), pooled

    def forward(self, x: Tensor) -> Tensor:
        y = self.convolution(x)
        return self.activation(self.norm(halve_by_max(y) if self.pooled else y))


class Group(nn.Module):
    """Halve the size, change the channels, and apply two more convolutions as a residual block."""

    def __init__(self, inputs: int, outputs: int, activation: type[nn.Module], ghost: int = 0) -> None:
        super().__init__()
        self.into = NormalisedConvolution(inputs, outputs, activation, ghost, pooled=True)
        self.block = nn.Sequential(*(NormalisedConvolution(outputs, outputs, activation, ghost) for _ in range(2)))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.into(x)
        return y + self.block(y)


class Network(RowNetwork):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        inputs, _, _ = get_image_size(sizes.shape)
        if settings["activation"] not in ACTIVATIONS:
            raise ModelError(f"setting activation = {settings['activation']!r}: use {' or '.join(ACTIVATIONS)}")
        activation, widths, ghost = ACTIVATIONS[settings["activation"]], settings["widths"], settings["ghost"]
        if ghost < 0 or ghost == 1:
            raise ModelError(f"setting ghost = {ghost}: use 2 rows or more, or 0 for whole batches")
        if not widths:
            raise ModelError("setting widths = []: give the channels of one convolution or more")
        self.shape, self.width = sizes.shape, widths[-1]
        groups = (Group(before, after, activation, ghost) for before, after in pairwise(widths))
        self.body = nn.Sequential(NormalisedConvolution(inputs, widths[0], activation, ghost), *groups)
        self.head = Linear(self.width, sizes.outputs)

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Flat images `numbers` (K, n, pixels) to images (K, n, channels, height, width); `categories` is empty."""
        return unflatten_images(numbers, self.shape)

    def encode(self, x: Tensor) -> Tensor:
        """Output of `embed` to features (K, n, width): means over all places."""
        y: Tensor = self.body(x)
        return y.flatten(3).mean(dim=3)
