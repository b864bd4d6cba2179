"""Transform images for a network by named steps: `resize 256, crop 224, normalise imagenet`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError, UnknownName
from ..decoders import load_decoder
from .images import Given, map_images

if TYPE_CHECKING:
    from PIL.Image import Image

Moments = tuple[tuple[float, float, float], tuple[float, float, float]]
"""The mean and standard deviation of each channel, for pixels from 0 to 1."""

MOMENTS: Mapping[str, Moments] = MappingProxyType(
    {
        "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
        "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    }
)
"""By name: ImageNet's, used by torchvision's and most other networks; CLIP's; pixels from -1 to 1; and unchanged pixels
from 0 to 1."""

NAMED: Mapping[str, str] = MappingProxyType(
    {
        "clip": "resize 224 bicubic, crop 224, normalise clip",
        "domainbed": "resize 224x224, normalise imagenet",
        "imagenet": "resize 256, crop 224, normalise imagenet",
    }
)
"""Complete transforms by name: of CLIP's networks with 224 pixels (Radford et al. 2021), of evaluation in DomainBed
(Gulrajani and Lopez-Paz 2021), and of networks trained on ImageNet (He et al. 2016)."""

_INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
_NUMBERS = r"\d*\.?\d+( \d*\.?\d+ \d*\.?\d+)?"
"""One number, or one of each channel."""
_STEP = re.compile(
    rf"resize (?P<high>\d+)(x(?P<wide>\d+))?( (?P<by>{'|'.join(_INTERPOLATIONS)}))?"
    rf"|crop (?P<crop>\d+)|normalise (?P<moments>{'|'.join(MOMENTS)})"
    rf"|normalise (?P<mean>{_NUMBERS}) / (?P<deviation>{_NUMBERS})"
)
_MOST = 4096


@dataclass(frozen=True)
class Transform:
    """Comma-separated steps that convert images to float32 pixels, (n, 3, height, width).

    `resize 256`: the shorter side to 256 pixels, bilinear unless another interpolation is named (`resize 224 bicubic`).
    `resize 224x224`: to this height and width, without keeping proportions. `crop 224`: a centre crop of this side,
    padded with black. `normalise NAME`: by a mean and standard deviation of `MOMENTS`, or by numbers, for all channels
    or for red, green and blue (`normalise 0.5 / 0.25`); it comes last, and without it pixels are from 0 to 1. Or one of
    `NAMED`.

    Raises `FarshiftError` for other text, and for steps that give images of several sizes.
    """

    text: str

    def __post_init__(self) -> None:
        _ = self.moments

    def __str__(self) -> str:
        return self.text

    @property
    def decides(self) -> list[str]:
        """What determines the pixels besides the steps."""
        return [load_decoder().version]

    def pixels(self, given: Given) -> NDArray[np.float32]:
        """Convert images, encoded or as uint8 arrays, to (n, 3, height, width). Raises `BadImage` for the first that
        cannot be decoded."""
        return map_images(given, self._transform_image)

    def _transform_image(self, image: Image) -> NDArray[np.float32]:
        for step in self._steps:
            if step["crop"]:
                side = int(step["crop"])
                left, top = (image.width - side) // 2, (image.height - side) // 2
                image = image.crop((left, top, left + side, top + side))
            elif step["high"]:
                image = _resize_image(image, int(step["high"]), int(step["wide"] or 0), step["by"] or "bilinear")
        mean, deviation = self.moments
        scaled = (np.asarray(image, np.float32) / np.float32(255) - mean) / deviation
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))

    @cached_property
    def _steps(self) -> list[dict[str, str | None]]:
        """The groups of `_STEP` of each step."""
        steps = []
        for text in NAMED.get(self.text, self.text).split(","):
            step = _STEP.fullmatch(" ".join(text.split()))
            if step is None:
                if "," not in self.text and " " not in self.text.strip():
                    raise UnknownName("transform", self.text, NAMED)
                raise FarshiftError(
                    f"transform {self.text!r}: unknown step {text.strip()!r}: use resize 256, resize 224x224, "
                    f"crop 224, normalise {', '.join(MOMENTS)}, or normalise 0.5 / 0.25"
                )
            steps.append(step.groupdict())
        sizes = [int(step[size]) for step in steps for size in ("high", "wide", "crop") if step[size]]
        if any(not 0 < size <= _MOST for size in sizes):
            raise FarshiftError(f"transform {self.text!r}: sizes have to be from 1 to {_MOST} pixels")
        if not any(step["crop"] or step["wide"] for step in steps):
            raise FarshiftError(
                f"transform {self.text!r} gives images of several sizes: add a crop, or resize to two sides (224x224)"
            )
        if not all(step["crop"] or step["high"] for step in steps[:-1]):
            raise FarshiftError(f"transform {self.text!r}: normalise has to come last")
        return steps

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the pixels."""
        sized = [step for step in self._steps if step["crop"] or step["high"]][-1]
        high = int(sized["crop"] or sized["high"] or 0)
        return high, int(sized["wide"] or high)

    @cached_property
    def moments(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The mean and standard deviation of red, green and blue, (3,), for pixels from 0 to 1."""
        last = self._steps[-1]
        moments = np.array(MOMENTS[last["moments"] or "none"], np.float32)
        if last["mean"] and last["deviation"]:
            for row, text in enumerate((last["mean"], last["deviation"])):
                moments[row] = np.array([float(number) for number in text.split()], np.float32)
            if moments[1].min() <= 0:
                raise FarshiftError(f"transform {self.text!r}: the deviation has to be above 0")
        return moments[0], moments[1]


def _resize_image(image: Image, high: int, wide: int, by: str) -> Image:
    """To this height and width, or if that is 0 its shorter side to this height."""
    import PIL.Image

    size = wide, high
    if not wide:
        width, height = image.size
        short, long = min(width, height), max(width, height)
        other = int(high * long / short)
        size = (high, other) if width <= height else (other, high)
    return image.resize(size, PIL.Image.Resampling[by.upper()])
