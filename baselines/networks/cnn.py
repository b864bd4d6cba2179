"""A small convolutional network: convolutions, each pooled to half the size, and one dense layer.

LeCun, Bottou, Bengio and Haffner, Proc. IEEE 1998 (LeNet-5), with ReLU and maxima in place of its sigmoids and means;
initial weights as He et al., ICCV 2015 (arXiv:1502.01852).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..encoding.encoding import Sizes
from ..encoding.images import get_image_size, unflatten_images
from ..layers.convolution import Conv2d, halve_by_max
from ..layers.dropout import Dropout
from ..layers.linear import Linear
from . import RowNetwork

TASK = "classification"
READS = "images"
SETTINGS: dict[str, Any] = {"widths": [32, 64], "width": 128, "dropout": 0.0}
"""widths: channels of each 3 x 3 convolution. width: units of the dense layer. dropout: of its outputs."""


class Network(RowNetwork):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        inputs, height, side = get_image_size(sizes.shape)
        self.shape, self.width = sizes.shape, settings["width"]
        self.convolutions = nn.ModuleList()
        for outputs in settings["widths"]:
            self.convolutions.append(Conv2d(inputs, outputs, 3))
            inputs, height, side = outputs, -(-height // 2), -(-side // 2)
        self.dense = Linear(inputs * height * side, self.width)
        self.dropout = Dropout(settings["dropout"])
        self.head = Linear(self.width, sizes.outputs)
        for layer in (*self.convolutions, self.dense):
            nn.init.kaiming_normal_(layer.weight[0], nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def embed(self, categories: Tensor, numbers: Tensor) -> Tensor:
        """Flat images `numbers` (K, n, pixels) to images (K, n, channels, height, width); `categories` is empty."""
        return unflatten_images(numbers, self.shape)

    def encode(self, x: Tensor) -> Tensor:
        for convolution in self.convolutions:
            x = halve_by_max(torch.relu(convolution(x)))
        return self.dropout(torch.relu(self.dense(x.flatten(2))))
