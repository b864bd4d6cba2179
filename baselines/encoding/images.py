"""The contents of an image column: where its channels are, and its pixels in the order that convolutions expect."""

from collections.abc import Sequence

from torch import Tensor

from ...core.errors import ModelError


def find_channel_axis(shape: Sequence[int]) -> int | None:
    """The channel axis of an image's shape: None for two axes; for three, the shorter of the first and the last, and
    the last if they are equal."""
    if len(shape) == 2:
        return None
    return 0 if shape[0] < shape[-1] else 2


def get_image_size(shape: Sequence[int]) -> tuple[int, int, int]:
    """(channels, height, width) of an image of this shape; `ModelError` if it is not an image's."""
    if len(shape) not in (2, 3):
        raise ModelError("a convolutional network reads images: exactly one numeric input of two or three axes")
    axis = find_channel_axis(shape)
    height, width = (size for index, size in enumerate(shape) if index != axis)
    return 1 if axis is None else shape[axis], height, width


def unflatten_images(numbers: Tensor, shape: Sequence[int]) -> Tensor:
    """Reshape flat images (.., pixels) of one shape to (.., channels, height, width)."""
    pixels = numbers.reshape(*numbers.shape[:-1], *shape)
    axis = find_channel_axis(shape)
    return pixels.unsqueeze(-3) if axis is None else pixels.movedim(axis - 3, -3)
