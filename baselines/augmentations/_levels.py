"""Operations on the 8-bit levels of a batch of images (B, channels, height, width) from 0 to 1: Pillow's, exactly, of
images whose values are levels over 255; other values are rounded to them."""

import torch
from torch import Tensor

LEVELS = 256


def to_levels(x: Tensor) -> Tensor:
    """Integers from 0 to 255, int64."""
    return (x * 255).round().long().clamp_(0, 255)


def posterise_images(x: Tensor, bits: Tensor) -> Tensor:
    """Retain the `bits` highest bits of each level, (B,) int64 from 0 to 8."""
    cut = (8 - bits).view(-1, 1, 1, 1)
    return _from_levels((to_levels(x) >> cut) << cut, x)


def solarise_images(x: Tensor, threshold: Tensor) -> Tensor:
    """Invert levels from a threshold on, (B,)."""
    own = to_levels(x)
    return _from_levels(torch.where(own.double() < threshold.double().view(-1, 1, 1, 1), own, 255 - own), x)


def stretch_contrast(x: Tensor) -> Tensor:
    """Autocontrast: stretch each channel's levels to the full range."""
    own = to_levels(x).flatten(2)
    low, high = own.amin(2, keepdim=True).double(), own.amax(2, keepdim=True).double()
    scale = 255.0 / (high - low).clamp(min=1)
    # Pillow's lookup table: level * scale + offset, truncated, not rounded.
    table = (torch.arange(LEVELS, device=x.device).double() * scale - low * scale).trunc().clamp(0, 255).long()
    same = torch.arange(LEVELS, device=x.device).expand(table.shape)
    return _from_levels(torch.where(high > low, table, same).gather(2, own).view(x.shape), x)


def equalise_histogram(x: Tensor) -> Tensor:
    """Equalise each channel's histogram, as in Pillow."""
    own = to_levels(x).flatten(2)
    counts = torch.zeros(*own.shape[:2], LEVELS, dtype=torch.int64, device=x.device)
    counts.scatter_add_(2, own, torch.ones_like(own))
    last = counts.gather(2, own.amax(2, keepdim=True))
    step = (own.shape[2] - last) // 255
    before = step // 2 + counts.cumsum(2) - counts
    table = (before // step.clamp(min=1)).clamp(0, 255)
    same = torch.arange(LEVELS, device=x.device).expand(table.shape)
    plain = (step == 0) | ((counts > 0).sum(2, keepdim=True) <= 1)
    return _from_levels(torch.where(plain, same, table).gather(2, own).view(x.shape), x)


def _from_levels(values: Tensor, x: Tensor) -> Tensor:
    return values.to(x.dtype) / 255
