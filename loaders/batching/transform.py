"""Pictures as a network reads them, by named steps: `resize 256, crop 224, normalise imagenet`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError, UnknownName
from ..decoders import load_decoder
from .one_image import Given, map_images

if TYPE_CHECKING:
    from PIL.Image import Image

Moments = tuple[tuple[float, float, float], tuple[float, float, float]]
"""The mean and the deviation of each channel, of pixels from 0 to 1."""

MOMENTS: Mapping[str, Moments] = MappingProxyType(
    {
        "clip": ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
        "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
    }
)
"""By name: those of ImageNet that torchvision's and most other networks were trained with, those of CLIP, pixels from
-1 to 1, and pixels from 0 to 1 as they are."""

NAMED: Mapping[str, str] = MappingProxyType(
    {
        "clip": "resize 224 bicubic, crop 224, normalise clip",
        "domainbed": "resize 224x224, normalise imagenet",
        "imagenet": "resize 256, crop 224, normalise imagenet",
    }
)
"""Whole transforms by name: how CLIP's networks of 224 pixels read pictures (Radford et al. 2021), how DomainBed
evaluates (Gulrajani and Lopez-Paz 2021), and how networks trained on ImageNet are (He et al. 2016)."""

_INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
_STEP = re.compile(
    rf"resize (?P<high>\d+)(x(?P<wide>\d+))?( (?P<by>{'|'.join(_INTERPOLATIONS)}))?"
    rf"|crop (?P<crop>\d+)|normalise (?P<moments>{'|'.join(MOMENTS)})"
)
_MOST = 4096


@dataclass(frozen=True)
class Transform:
    """Steps, by commas, then pixels as float32, (n, 3, height, width).

    `resize 256`: the shorter side to 256 pixels, bilinear unless another interpolation stands behind it (`resize 224
    bicubic`); `resize 224x224`: to this height and width, whatever the proportions. `crop 224`: a square of the
    picture's middle; what lies beyond the picture is black. `normalise NAME`: by a mean and a deviation of `MOMENTS`;
    it comes last, and without it pixels are from 0 to 1. Or one of `NAMED`.

    Raises `FarshiftError` for text that is no such steps, and for steps that give pictures of several sizes.
    """

    text: str

    def __post_init__(self) -> None:
        _ = self._steps, self._moments

    def __str__(self) -> str:
        return self.text

    @property
    def decides(self) -> list[str]:
        """What the pixels depend on besides the steps."""
        return [load_decoder().version]

    def pixels(self, given: Given) -> NDArray[np.float32]:
        """Pictures, encoded or as arrays of uint8, to (n, 3, height, width). `BadImage` names the first that cannot
        be decoded."""
        return map_images(given, self._transform_image)

    def _transform_image(self, image: Image) -> NDArray[np.float32]:
        for step in self._steps:
            image = step(image)
        mean, deviation = self._moments
        scaled = (np.asarray(image, np.float32) / np.float32(255) - mean) / deviation
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))

    @cached_property
    def _read(self) -> list[re.Match[str]]:
        steps = []
        for text in NAMED.get(self.text, self.text).split(","):
            step = _STEP.fullmatch(" ".join(text.split()))
            if step is None:
                if "," not in self.text and " " not in self.text.strip():
                    raise UnknownName("transform", self.text, NAMED)
                raise FarshiftError(
                    f"transform {self.text!r}: the step {text.strip()!r} is none: write resize 256, resize 224x224, "
                    f"crop 224 or normalise {', '.join(MOMENTS)}"
                )
            steps.append(step)
        sizes = [int(size) for step in steps for size in step.group("high", "wide", "crop") if size]
        if any(not 0 < size <= _MOST for size in sizes):
            raise FarshiftError(f"transform {self.text!r}: sizes are from 1 to {_MOST} pixels")
        if not any(step["crop"] or step["wide"] for step in steps):
            raise FarshiftError(
                f"transform {self.text!r} gives pictures of several sizes: add a crop, or resize to two sides (224x224)"
            )
        if any(step["moments"] for step in steps[:-1]):
            raise FarshiftError(f"transform {self.text!r}: normalise comes last")
        return steps

    @cached_property
    def _steps(self) -> list[Callable[[Image], Image]]:
        return [_make_step(step) for step in self._read if not step["moments"]]

    @cached_property
    def _moments(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        mean, deviation = MOMENTS[self._read[-1]["moments"] or "none"]
        return np.array(mean, np.float32), np.array(deviation, np.float32)

    def __getstate__(self) -> dict[str, Any]:
        return {"text": self.text}  # steps are functions, which a worker makes anew


def _make_step(match: re.Match[str]) -> Callable[[Image], Image]:
    if match["crop"]:
        return lambda image: _crop_image(image, int(match["crop"]))
    by, high = match["by"] or "bilinear", int(match["high"])
    return lambda image: _resize_image(image, high, int(match["wide"]) if match["wide"] else None, by)


def _resize_image(image: Image, high: int, wide: int | None, by: str) -> Image:
    import PIL.Image

    if wide is None:
        width, height = image.size
        short, long = min(width, height), max(width, height)
        other = int(high * long / short)
        size = (high, other) if width <= height else (other, high)
    else:
        size = (wide, high)
    return image.resize(size, PIL.Image.Resampling[by.upper()])


def _crop_image(image: Image, side: int) -> Image:
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))
