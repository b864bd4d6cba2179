"""What a column of images holds, where its channels are, and its pixels in the order that convolutions read them."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ...core.errors import ModelError
from ...loaders.batching.encoded import is_encoded as is_encoded


def find_channel_axis(shape: Sequence[int]) -> int | None:
    """The axis of an image's shape that holds its channels: None of two axes; of three, the shorter of the first and
    the last, and the last where they tie."""
    if len(shape) == 2:
        return None
    return 0 if shape[0] < shape[-1] else 2


def get_image_size(shape: Sequence[int]) -> tuple[int, int, int]:
    """(channels, height, width) of an image of this shape; `ModelError` where there is no image."""
    if len(shape) not in (2, 3):
        raise ModelError("a convolutional network reads images: one numeric input of two or three axes, and no other")
    axis = find_channel_axis(shape)
    height, width = (size for index, size in enumerate(shape) if index != axis)
    return 1 if axis is None else shape[axis], height, width


def unflatten_images(numbers: Tensor, shape: Sequence[int]) -> Tensor:
    """Flat images (.., pixels) of one shape as (.., channels, height, width)."""
    pixels = numbers.reshape(*numbers.shape[:-1], *shape)
    axis = find_channel_axis(shape)
    return pixels.unsqueeze(-3) if axis is None else pixels.movedim(axis - 3, -3)
