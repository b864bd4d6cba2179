"""Operations on a batch of images (B, channels, height, width) from 0 to 1, with parameters per image.

They are Pillow's, on numbers instead of 8-bit levels: the same geometry (a pixel's centre is at half a pixel), the same
filters and weights. An image's result does not depend on the other images. Sums over an image are sums of integer
levels, whose order does not matter.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ._draws import Draws

Operation = Callable[[Tensor, Draws], Tensor]

LEVELS = 256

LUMA = (19595 / 65536, 38470 / 65536, 7471 / 65536)
"""The weights of red, green and blue in Pillow's conversion to grey (ITU-R 601-2)."""


def apply_operations(x: Tensor, which: Tensor, operations: Sequence[Operation], draws: Draws) -> Tensor:
    """Apply to each image the operation with its number, `which` (B,)."""
    result = x.clone()
    for number, operation in enumerate(operations):
        own = (which == number).nonzero()[:, 0]
        if len(own):
            result[own] = operation(x[own], draws.picked(own))
    return result


def broadcast_to_images(values: Tensor, x: Tensor) -> Tensor:
    """Reshape one value per image, (B,), to broadcast with images like x."""
    return values.to(x.dtype).view(-1, 1, 1, 1)


def flip_images(x: Tensor, which: Tensor) -> Tensor:
    """Flip some images, `which` (B,) bool, horizontally."""
    return torch.where(which.view(-1, 1, 1, 1), x.flip(-1), x)


def to_grey(x: Tensor) -> Tensor:
    """Luminance, (B, 1, height, width); for images of one channel, that channel."""
    if x.shape[1] == 1:
        return x
    return x[:, :1] * LUMA[0] + x[:, 1:2] * LUMA[1] + x[:, 2:3] * LUMA[2]


def blend_images(x: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    """Interpolate or extrapolate from `other` (factor 0) to x (factor 1), factors (B,); clipped to 0 .. 1."""
    share = broadcast_to_images(factor, x)
    return (other + (x - other) * share).clamp(0, 1)


def adjust_brightness(x: Tensor, factor: Tensor) -> Tensor:
    return blend_images(x, torch.zeros_like(x), factor)


def adjust_contrast(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the image's mean luminance, an integer level."""
    levels = (to_grey(x) * 255).round().long().flatten(1)
    mean = (levels.sum(1).double() / levels.shape[1] + 0.5).floor() / 255
    return blend_images(x, broadcast_to_images(mean, x).expand_as(x), factor)


def adjust_colour(x: Tensor, factor: Tensor) -> Tensor:
    """Adjust the saturation: blend with the luminance."""
    return blend_images(x, to_grey(x).expand_as(x), factor)


def adjust_sharpness(x: Tensor, factor: Tensor) -> Tensor:
    """Blend with the mean over nine pixels, the middle one with weight 5 of 13; the border does not change."""
    smooth = x.clone()
    if min(x.shape[-2:]) > 2:
        rows = x[..., :-2, :] + x[..., 1:-1, :] + x[..., 2:, :]
        nine = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]
        smooth[..., 1:-1, 1:-1] = (nine + 4 * x[..., 1:-1, 1:-1]) / 13
    return blend_images(x, smooth, factor)


def adjust_hue(x: Tensor, turn: Tensor) -> Tensor:
    """Shift the hue by `turn` (B,) of a full circle; images of one channel have none."""
    if x.shape[1] == 1:
        return x
    red, green, blue = x.unbind(1)
    value, least = x.amax(1), x.amin(1)
    chroma = value - least
    safe = torch.where(chroma > 0, chroma, 1.0)
    sector = torch.where(
        value == red,
        ((green - blue) / safe) % 6,
        torch.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    sector = (sector + 6 * turn.to(x.dtype).view(-1, 1, 1)) % 6
    channels = []
    for offset in (5, 3, 1):
        phase = (sector + offset) % 6
        channels.append(value - chroma * torch.minimum(phase, 4 - phase).clamp(0, 1))
    return torch.stack(channels, dim=1)


def crop_images(x: Tensor, top: Tensor, left: Tensor, height: Tensor, width: Tensor) -> Tensor:
    """Crop a window of each image (B,), in whole pixels, and resize it to the image's size: bilinear, as in Pillow."""
    down, beside = (
        _compute_neighbours(top, height, x.shape[-2], x.dtype),
        _compute_neighbours(left, width, x.shape[-1], x.dtype),
    )
    low, high, share = (part[:, None, :, None] for part in down)
    rows = _gather_along(x, low, 2) * (1 - share) + _gather_along(x, high, 2) * share
    low, high, share = (part[:, None, None, :] for part in beside)
    return _gather_along(rows, low, 3) * (1 - share) + _gather_along(rows, high, 3) * share


def _compute_neighbours(start: Tensor, length: Tensor, size: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """The two pixels between which each of `size` new ones is, and the share of the second, (B, size)."""
    places = torch.arange(size, device=start.device, dtype=torch.float64)
    at = ((places + 0.5) * (length.double()[:, None] / size) - 0.5).clamp(min=0)
    at = torch.minimum(at, length.double()[:, None] - 1)
    low = at.floor()
    high = torch.minimum(low + 1, length.double()[:, None] - 1)
    return (low.long() + start.long()[:, None]), (high.long() + start.long()[:, None]), (at - low).to(dtype)


def _gather_along(x: Tensor, places: Tensor, axis: int) -> Tensor:
    shape = [*x.shape]
    shape[axis] = places.shape[axis]
    return x.gather(axis, places.expand(shape))


def apply_affine(
    x: Tensor,
    a: Tensor | float,
    b: Tensor | float,
    c: Tensor | float,
    d: Tensor | float,
    e: Tensor | float,
    f: Tensor | float,
    smooth: bool = False,
) -> Tensor:
    """Each new pixel's centre (u, v) shows the old image at (a u + b v + c, d u + e v + f) (numbers, or (B,)); black
    where that is outside. smooth: bilinear instead of the nearest pixel."""
    height, width = x.shape[-2:]
    v = torch.arange(height, device=x.device, dtype=torch.float64)[:, None] + 0.5
    u = torch.arange(width, device=x.device, dtype=torch.float64)[None, :] + 0.5
    a, b, c, d, e, f = (
        torch.as_tensor(coefficient, dtype=torch.float64, device=x.device).view(-1, 1, 1)
        for coefficient in (a, b, c, d, e, f)
    )
    across, down = (a * u + b * v + c).expand(len(x), height, width), (d * u + e * v + f).expand(len(x), height, width)
    inside = (across >= 0) & (across < width) & (down >= 0) & (down < height)
    if not smooth:
        return torch.where(inside[:, None], _gather_pixels(x, down.floor().long(), across.floor().long()), 0.0)
    left, top = (across - 0.5).floor(), (down - 0.5).floor()
    right_share, lower_share = ((across - 0.5 - left)[:, None].to(x.dtype), (down - 0.5 - top)[:, None].to(x.dtype))
    left, top = left.long(), top.long()
    upper = _gather_pixels(x, top, left) * (1 - right_share) + _gather_pixels(x, top, left + 1) * right_share
    lower = _gather_pixels(x, top + 1, left) * (1 - right_share) + _gather_pixels(x, top + 1, left + 1) * right_share
    return torch.where(inside[:, None], upper * (1 - lower_share) + lower * lower_share, 0.0)


def _gather_pixels(x: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Pixels at places (B, height, width); for places outside, the nearest pixel inside."""
    height, width = x.shape[-2:]
    flat = row.clamp(0, height - 1) * width + column.clamp(0, width - 1)
    pixels = x.flatten(2).gather(2, flat.flatten(1)[:, None].expand(-1, x.shape[1], -1))
    return pixels.view(x.shape)


def rotate_images(x: Tensor, degrees: Tensor, smooth: bool = False) -> Tensor:
    """Rotate counter-clockwise about the centre by `degrees` (B,)."""
    angle = -degrees.double() * (torch.pi / 180)
    cos, sin = angle.cos(), angle.sin()
    v, u = x.shape[-2] / 2, x.shape[-1] / 2
    return apply_affine(x, cos, sin, u - cos * u - sin * v, -sin, cos, v + sin * u - cos * v, smooth)


def erase_rectangles(
    x: Tensor, top: Tensor, left: Tensor, bottom: Tensor, right: Tensor, fill: Tensor | float = 0.0
) -> Tensor:
    """Fill a rectangle of each image, from (top, left) to (bottom, right), the latter excluded, (B,)."""
    v = torch.arange(x.shape[-2], device=x.device).view(1, -1, 1)
    u = torch.arange(x.shape[-1], device=x.device).view(1, 1, -1)
    top, left, bottom, right = (edge.view(-1, 1, 1) for edge in (top, left, bottom, right))
    inside = (v >= top) & (v < bottom) & (u >= left) & (u < right)
    return torch.where(inside[:, None], torch.as_tensor(fill, dtype=x.dtype, device=x.device).view(1, -1, 1, 1), x)


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
