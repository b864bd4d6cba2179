"""Encoded pictures as pixels."""

from __future__ import annotations

import io

import numpy as np
import pytest
from encoded_files import picture
from farshift.loaders.batching.images import decode_images
from farshift.loaders.decoders import load_decoder
from PIL import Image


def alone(content: bytes, side: int) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as item:
        item.draft("RGB", (side, side))
        return np.asarray(item.convert("RGB").resize((side, side), Image.Resampling.BILINEAR))


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_pictures_of_any_size_and_form_become_pixels_of_one_size(form):
    files = [picture(number, form, side) for number, side in enumerate((8, 16, 40, 100))]
    result = decode_images(files, 16)
    assert result.shape == (4, 16, 16, 3)
    for content, pixels in zip(files, result, strict=True):
        np.testing.assert_array_equal(pixels, alone(content, 16))


def test_no_pictures_are_no_pixels():
    assert decode_images([], 8).shape == (0, 8, 8, 3)


def test_the_decoder_is_named_with_its_version():
    assert load_decoder().version.split()[0] == "Pillow"


def test_a_machine_without_memory_is_not_a_picture_that_is_broken(monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "resize", full)
    with pytest.raises(MemoryError):
        decode_images([picture(0)], 8)
