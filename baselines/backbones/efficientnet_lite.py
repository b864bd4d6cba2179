"""EfficientNet-Lite: inverted residual blocks with ReLU6, without squeeze-and-excitation.

Tan and Le, ICML 2019 (arXiv:1905.11946), table 1, as changed in Google's EfficientNet-Lite of 2020: stem, head and the
repetitions of the first and last stage are not scaled. Padding is TensorFlow's `SAME`, with the odd pixel at the end.
"""

import math
import re
from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

STAGES = ((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80), (3, 5, 1, 6, 112), (4, 5, 2, 6, 192),
          (1, 3, 1, 6, 320))  # fmt: skip
"""Of each stage: blocks, kernel, stride of the first block, expansion, channels."""
STEM, TOP = 32, 1280

_RENAMED = (
    (r"^_conv_stem\.", "stem.convolution."),
    (r"^_bn0\.", "stem.norm."),
    (r"^_conv_head\.", "top.convolution."),
    (r"^_bn1\.", "top.norm."),
    (r"^_fc\.", "head."),
    (r"^_blocks\.", "blocks."),
    (r"\._(expand|depthwise|project)_conv\.", r".\1.convolution."),
    (r"\._bn0\.", ".expand.norm."),
    (r"\._bn1\.", ".depthwise.norm."),
    (r"\._bn2\.", ".project.norm."),
)


class NormalisedConvolution(nn.Module):
    """A convolution without bias and batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        padding = kernel // 2 if stride == 1 else 0
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        if self.stride > 1:
            high, wide = (max((math.ceil(n / self.stride) - 1) * self.stride + self.kernel - n, 0) for n in x.shape[2:])
            x = F.pad(x, (wide // 2, wide - wide // 2, high // 2, high - high // 2))
        y: Tensor = self.norm(self.convolution(x))
        return y


class Block(nn.Module):
    """Expand the channels, filter each, project them; added to the input where the shape is the same."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.expand = NormalisedConvolution(inputs, wide, 1) if expansion > 1 else None
        self.depthwise = NormalisedConvolution(wide, wide, kernel, stride, groups=wide)
        self.project = NormalisedConvolution(wide, outputs, 1)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        wide = x if self.expand is None else F.relu6(self.expand(x))
        y: Tensor = self.project(F.relu6(self.depthwise(wide)))
        return x + y if self.adds else y


class EfficientNetLite(nn.Module):
    def __init__(self, width: float, depth: float, classes: int) -> None:
        super().__init__()
        channels = [STEM, *(_round_channels(stage[-1] * width) for stage in STAGES)]
        self.stem = NormalisedConvolution(3, STEM, 3, stride=2)
        self.blocks = nn.ModuleList()
        for number, ((inputs, outputs), stage) in enumerate(zip(pairwise(channels), STAGES, strict=True)):
            repeats, kernel, stride, expansion, _ = stage
            count = repeats if number in (0, len(STAGES) - 1) else math.ceil(depth * repeats)
            for index in range(count):
                into, step = (inputs, stride) if index == 0 else (outputs, 1)
                self.blocks.append(Block(into, outputs, kernel, step, expansion))
        self.top = NormalisedConvolution(channels[-1], TOP, 1)
        self.head = nn.Linear(TOP, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Images (n, 3, height, width) to logits (n, classes)."""
        x = F.relu6(self.stem(x))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(F.relu6(self.top(x)).mean(dim=(2, 3)))
        return logits

    def rename(self, name: str) -> str:
        """The own name of a tensor of the released weights."""
        for pattern, replacement in _RENAMED:
            name = re.sub(pattern, replacement, name)
        return name


def build(width: float = 1.0, depth: float = 1.0, classes: int = 1000) -> EfficientNetLite:
    """The network with `width` times the channels and `depth` times the blocks."""
    return EfficientNetLite(width, depth, classes)


def _round_channels(scaled: float) -> int:
    """The nearest multiple of 8, not below 90 % of it."""
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * scaled else rounded
