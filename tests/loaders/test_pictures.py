"""Encoded pictures as pixels."""

from __future__ import annotations

import io

import numpy as np
import pytest
from encoded_files import picture
from farshift.core.errors import BadData
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


def test_many_threads_keep_the_order():
    files = [picture(number, "PNG", 4) for number in range(300)]
    np.testing.assert_array_equal(decode_images(files, 4), np.stack([alone(content, 4) for content in files]))


def test_grey_pictures_and_palettes_have_three_channels():
    grey = Image.fromarray(np.arange(16, dtype=np.uint8).reshape(4, 4))
    for mode in ("L", "P", "1"):
        out = io.BytesIO()
        grey.convert(mode).save(out, "PNG")
        pixels = decode_images([out.getvalue()], 4)[0]
        assert (pixels == pixels[..., :1]).all()


def test_no_pictures_are_no_pixels():
    assert decode_images([], 8).shape == (0, 8, 8, 3)


def test_a_picture_that_cannot_be_decoded_is_named_by_its_place():
    with pytest.raises(BadData, match="image 2 of 3 cannot be decoded"):
        decode_images([picture(0), picture(1), b"no picture"], 8)
    with pytest.raises(BadData, match="image 0 of 1 cannot be decoded"):
        decode_images([picture(0, "JPEG", 64)[:200]], 8)


def test_the_decoder_is_named_with_its_version():
    assert load_decoder().version.split()[0] == "Pillow"


def test_a_machine_without_memory_is_not_a_picture_that_is_broken(monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "resize", full)
    with pytest.raises(MemoryError):
        decode_images([picture(0)], 8)
