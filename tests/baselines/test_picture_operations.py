"""Operations on a batch of pictures are Pillow's on each of them."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import numpy as np
import pytest
import torch
from farshift.baselines.augmentations import (
    _images,
    _levels,
    domainbed,
)
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from .small_pictures import BILINEAR, NEAREST, ROWS, by_pillow, draws, levels, smooth, tensor

FACTOR = torch.linspace(0.1, 1.9, ROWS, dtype=torch.float64)
DEGREES = torch.linspace(-30, 30, ROWS, dtype=torch.float64)
SHEAR = torch.linspace(-0.3, 0.3, ROWS, dtype=torch.float64)
THRESHOLD = torch.linspace(0, 256, ROWS, dtype=torch.float64)
BITS = torch.arange(ROWS) % 8 + 1


def affine(one: Image.Image, place: tuple[float, ...], how: Image.Resampling) -> Image.Image:
    return one.transform(one.size, Image.Transform.AFFINE, place, resample=how)


# What it is, the change to the batch, the change to one picture, and how far their levels may lie apart.
OPERATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Image.Image, int], Image.Image], float]] = {
    "brightness": (
        lambda x: _images.adjust_brightness(x, FACTOR),
        lambda one, n: ImageEnhance.Brightness(one).enhance(float(FACTOR[n])),
        1,
    ),
    "contrast": (
        lambda x: _images.adjust_contrast(x, FACTOR),
        lambda one, n: ImageEnhance.Contrast(one).enhance(float(FACTOR[n])),
        1.5,
    ),
    "colour": (
        lambda x: _images.adjust_colour(x, FACTOR),
        lambda one, n: ImageEnhance.Color(one).enhance(float(FACTOR[n])),
        1.5,
    ),
    "sharpness": (
        lambda x: _images.adjust_sharpness(x, FACTOR),
        lambda one, n: ImageEnhance.Sharpness(one).enhance(float(FACTOR[n])),
        1.5,
    ),
    "autocontrast": (_levels.stretch_contrast, lambda one, n: ImageOps.autocontrast(one), 0),
    "equalised": (_levels.equalise_histogram, lambda one, n: ImageOps.equalize(one), 0),  # codespell:ignore equalize
    "posterize": (
        lambda x: _levels.posterise_images(x, BITS),
        lambda one, n: ImageOps.posterize(one, int(BITS[n])),
        0,
    ),
    "solarize": (
        lambda x: _levels.solarise_images(x, THRESHOLD),
        lambda one, n: ImageOps.solarize(one, float(THRESHOLD[n])),  # type: ignore[arg-type]
        0,
    ),
    "rotate": (lambda x: _images.rotate_images(x, DEGREES), lambda one, n: one.rotate(float(DEGREES[n])), 0),
    "rotate, bilinear": (
        lambda x: _images.rotate_images(x, DEGREES, smooth=True),
        lambda one, n: one.rotate(float(DEGREES[n]), resample=BILINEAR),
        1,
    ),
    "shear x": (
        lambda x: _images.apply_affine(x, 1, SHEAR, 0, 0, 1, 0),
        lambda one, n: affine(one, (1, float(SHEAR[n]), 0, 0, 1, 0), NEAREST),
        0,
    ),
    "shear y, bilinear": (
        lambda x: _images.apply_affine(x, 1, 0, 0, SHEAR, 1, 0, smooth=True),
        lambda one, n: affine(one, (1, 0, 0, float(SHEAR[n]), 1, 0), BILINEAR),
        1,
    ),
    "translate x": (
        lambda x: _images.apply_affine(x, 1, 0, 20 * SHEAR, 0, 1, 0),
        lambda one, n: affine(one, (1, 0, 20 * float(SHEAR[n]), 0, 1, 0), NEAREST),
        0,
    ),
    "translate y, bilinear": (
        lambda x: _images.apply_affine(x, 1, 0, 0, 0, 1, 24 * SHEAR, smooth=True),
        lambda one, n: affine(one, (1, 0, 0, 0, 1, 24 * float(SHEAR[n])), BILINEAR),
        1,
    ),
    "grey": (
        lambda x: _images.to_grey(x).expand_as(x),
        lambda one, n: one.convert("L").convert("RGB"),
        1,
    ),
    "flip": (
        lambda x: _images.flip_images(x, torch.arange(ROWS) % 2 == 0),
        lambda one, n: ImageOps.mirror(one) if n % 2 == 0 else one,
        0,
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_a_batch_is_pillow_s_on_each_picture(name: str) -> None:
    batch, single, apart = OPERATIONS[name]
    pictures = smooth()
    gap = np.abs(levels(batch(tensor(pictures))) - by_pillow(pictures, single))
    if apart:
        assert gap.max() <= apart + 1e-3
    else:  # a pixel whose place falls between two may go to either
        assert (gap > 1e-3).mean() < 2e-3


def test_levels_of_one_value_stay() -> None:
    x = torch.full((2, 3, 5, 5), 100 / 255)
    torch.testing.assert_close(_levels.stretch_contrast(x), x)
    torch.testing.assert_close(_levels.equalise_histogram(x), x)


def test_hue_is_turned_as_colorsys_does() -> None:
    x = tensor(smooth(4, 6, 5)).double()
    turn = torch.tensor([-0.3, 0.0, 0.2, 0.5], dtype=torch.float64)
    result = _images.adjust_hue(x, turn)
    for n in range(4):
        for v in range(6):
            for u in range(5):
                h, s, value = colorsys.rgb_to_hsv(*x[n, :, v, u].tolist())
                expected = colorsys.hsv_to_rgb((h + float(turn[n])) % 1, s, value)
                np.testing.assert_allclose(result[n, :, v, u].numpy(), expected, atol=1e-9)


def test_a_window_is_cut_and_enlarged_as_pillow_does() -> None:
    pictures = smooth()
    given = draws()
    top, left, height, width = domainbed.draw_windows(given, (24, 20), 0.3)
    result = levels(_images.crop_images(tensor(pictures), top, left, height, width))

    def one(picture: Image.Image, n: int) -> Image.Image:
        box = (int(left[n]), int(top[n]), int(left[n] + width[n]), int(top[n] + height[n]))
        return picture.crop(box).resize((20, 24), BILINEAR)

    assert np.abs(result - by_pillow(pictures, one)).max() <= 1 + 1e-3


def test_windows_have_the_areas_and_ratios_that_they_should() -> None:
    top, left, height, width = domainbed.draw_windows(draws(20000), (96, 96), 0.7)
    area, ratio = (height * width).double() / 96**2, width.double() / height.double()
    assert 0.69 < area.min() < 0.71
    assert area.max() <= 1
    assert 0.74 < ratio.min() < ratio.max() < 1.35
    assert abs(float(ratio.log().mean())) < 0.005
    assert ((top >= 0) & (left >= 0) & (top + height <= 96) & (left + width <= 96)).all()
    # Of windows that hardly fit, those that do are no longer uniform: of small ones they are.
    small = domainbed.draw_windows(draws(20000), (96, 96), 0.1, 0.5)
    share = (small[2] * small[3]).double() / 96**2
    assert float(share.mean()) == pytest.approx(0.3, abs=0.005)
    assert float(share.std()) == pytest.approx(0.4 / 12**0.5, abs=0.003)


def test_where_no_window_fits_the_picture_stays() -> None:
    x = torch.rand(3, 1, 40, 4)
    window = domainbed.draw_windows(draws(3), (40, 4), 1.0)
    torch.testing.assert_close(_images.crop_images(x, *window), x)
