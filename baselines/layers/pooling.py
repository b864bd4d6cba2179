"""Pooling of images with a replica axis."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def halve_by_max(x: Tensor) -> Tensor:
    """The maxima of 2 x 2 squares: (K, n, channels, H, W) to half the size, rounded up, so that no pixel is lost and an
    image of any size can be halved."""
    half = F.max_pool2d(x.flatten(0, 1), 2, ceil_mode=True)
    return half.view(*x.shape[:2], *half.shape[1:])
