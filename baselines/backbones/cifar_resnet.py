"""The residual networks for images of 32 x 32 pixels of He et al., CVPR 2016 (arXiv:1512.03385), section 4.2: three
stages of 16, 32 and 64 channels, with shortcuts without parameters (their option A)."""

import re

import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    """Two convolutions, added to the input; where the size halves, every second pixel of it, with channels of zeros."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.stride, self.missing = outputs // inputs, outputs - inputs
        self.conv1 = nn.Conv2d(inputs, outputs, 3, self.stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        before, after = self.missing // 2, self.missing - self.missing // 2
        return F.relu(y + F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, before, after)))


class CifarResNet(nn.Module):
    def __init__(self, blocks: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        widths = [(16, 16)] * blocks + [(16, 32)] + [(32, 32)] * (blocks - 1) + [(32, 64)] + [(64, 64)] * (blocks - 1)
        self.blocks = nn.ModuleList(Block(*width) for width in widths)
        self.head = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Images (n, 3, height, width) to logits (n, classes)."""
        x = F.relu(self.bn1(self.conv1(x)))
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(x.mean(dim=(2, 3)))
        return logits

    def rename(self, name: str) -> str:
        """The own name of a tensor of the released weights, whose blocks are numbered within each stage."""
        stage = re.match(r"layer(\d)\.(\d+)\.", name)
        if stage is None:
            return name.replace("linear.", "head.")
        return f"blocks.{(int(stage[1]) - 1) * len(self.blocks) // 3 + int(stage[2])}.{name[stage.end() :]}"


def build(depth: int, classes: int = 10) -> CifarResNet:
    """The network of `depth` = 6 n + 2 layers: 20, 32, 44, 56."""
    return CifarResNet((depth - 2) // 6, classes)
