"""What pixels a picture has, whatever its file's depth, colours and orientation: the same wherever one is decoded."""

from __future__ import annotations

import io
import struct
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from encoded_files import folder, picture
from farshift.benchmarks.adapters.openai_endpoint import make_content
from farshift.benchmarks.prompting.prompt import MediaPart
from farshift.core.errors import BadData
from farshift.loaders.batching.encoded import BadImage
from farshift.loaders.batching.images import decode_images
from farshift.loaders.batching.input_format import parse_image_format
from farshift.loaders.decoders.pillow import is_plain, open_rgb
from farshift.loaders.readers import image_folder
from PIL import Image, ImageOps

RAMP = np.tile(np.arange(0, 256, 8, dtype=np.uint8), (24, 1))
"""Greys of a picture 32 wide and 24 high."""
DEEP = (RAMP.astype(np.uint16) * 257).astype(np.uint16)


def saved(pixels: np.ndarray | Image.Image, form: str = "TIFF", **options) -> bytes:
    out = io.BytesIO()
    (pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)).save(out, form, **options)
    return out.getvalue()


def seen(content: bytes) -> np.ndarray:
    """The pixels, which every way to decode has."""
    files = np.empty(1, object)
    files[0] = content
    result = np.asarray(open_rgb(content))
    np.testing.assert_array_equal(np.asarray(parse_image_format("PIL")(files)[0]), result)
    sized = np.asarray(Image.fromarray(result).resize((8, 8), Image.Resampling.BILINEAR))
    if not content.startswith(b"\xff\xd8"):  # a JPEG is decoded at a part of its size
        np.testing.assert_array_equal(decode_images(files, 8)[0], sized)
        np.testing.assert_array_equal(parse_image_format(8)(files)[0], sized)
    steps = parse_image_format("resize 8x8")(files)[0].transpose(1, 2, 0) * 255
    np.testing.assert_allclose(steps, sized, atol=1e-3)
    return result


def packed_12(pixels: np.ndarray) -> bytes:
    """A little-endian TIFF of grey pixels with 12 bits."""
    high, wide = pixels.shape
    bits = np.unpackbits(pixels.astype(">u2").view(np.uint8).reshape(-1, 2), axis=1)[:, 4:]
    body = np.packbits(bits.reshape(high, -1), axis=1).tobytes()
    entries = [
        (256, wide),
        (257, high),
        (258, 12),
        (259, 1),
        (262, 1),
        (273, 8),
        (277, 1),
        (278, high),
        (279, len(body)),
    ]
    head = struct.pack("<2sHI", b"II", 42, 8 + len(body)) + body + struct.pack("<H", len(entries))
    return head + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries) + struct.pack("<I", 0)


@pytest.mark.parametrize(
    "content",
    [
        saved(DEEP, "PNG"),
        saved(DEEP),
        saved(Image.frombytes("I;16B", (32, 24), DEEP.astype(">u2").tobytes())),
        saved(DEEP, tiffinfo={258: 16}, compression="tiff_lzw"),
        packed_12(RAMP.astype(int) * 4095 // 255),
        saved(DEEP.astype(np.int32), "PPM"),
    ],
    ids=["png", "tiff", "big-endian", "lzw", "12 bits", "pgm"],
)
def test_greys_of_more_bits_are_those_of_the_same_picture_of_8(content):
    np.testing.assert_array_equal(seen(content), np.repeat(RAMP[..., None], 3, axis=2))


def test_a_deep_tiff_whose_zero_is_white_is_inverted_as_one_of_8_bits_is():
    content = bytearray(saved(DEEP))
    entry = content.index(struct.pack("<HHI", 262, 3, 1)) + 8
    content[entry : entry + 2] = struct.pack("<H", 0)
    np.testing.assert_array_equal(seen(bytes(content))[..., 0], 255 - RAMP)


COLOURS = Image.open(io.BytesIO(picture(4, "PNG")))
CLEAR = COLOURS.copy()
CLEAR.putalpha(Image.fromarray(np.resize(np.array([0, 255], np.uint8), (16, 16))))


@pytest.mark.parametrize("image", [CLEAR, COLOURS.convert("LA"), COLOURS.convert("P"), COLOURS.convert("1"), COLOURS])
def test_other_pictures_of_8_bits_and_less_are_as_pillow_converts_them(image):
    content = saved(image, "PNG")
    np.testing.assert_array_equal(seen(content), np.asarray(Image.open(io.BytesIO(content)).convert("RGB")))
    if image.mode == "RGBA":  # what is transparent keeps its colour
        np.testing.assert_array_equal(seen(content), np.asarray(COLOURS))


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", [1, 3, 6, 7])
def test_pictures_are_upright_as_their_exif_says(form, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    pixels = Image.fromarray(np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8))
    content, plain = saved(pixels, form, exif=exif), saved(pixels, form)
    result = seen(content)
    with Image.open(io.BytesIO(content)) as image:
        np.testing.assert_array_equal(result, np.asarray(ImageOps.exif_transpose(image)))
    assert result.shape[:2] == ((32, 24) if orientation > 4 else (24, 32))
    assert np.array_equal(result, seen(plain)) == (orientation == 1)
    assert is_plain(content) == (orientation == 1 or form == "TIFF") and is_plain(plain)


def test_a_large_jpeg_that_is_decoded_small_is_upright_too():
    exif = Image.Exif()
    exif[0x0112] = 8
    large = Image.fromarray(np.kron(RAMP, np.ones((10, 10), np.uint8)))
    turned = decode_images([saved(large, "JPEG", exif=exif)], 16)[0].astype(int)
    upright = np.rot90(decode_images([saved(large, "JPEG")], 16)[0].astype(int))
    assert np.abs(turned - upright).max() < 20 and np.ptp(turned[:, 0]) > 150


def test_damaged_exif_says_nothing_of_the_pixels():
    content = saved(COLOURS, "JPEG", exif=b"Exif\0\0II*\0no directory")
    np.testing.assert_array_equal(seen(content), seen(saved(COLOURS, "JPEG")))


@pytest.mark.parametrize(
    ("pixels", "what"),
    [
        (RAMP.astype(np.float32) / 255, "32-bit floating-point numbers"),
        (RAMP.astype(np.int32) * 1000, "32-bit signed whole numbers"),
    ],
)
def test_pixels_that_have_no_white_are_refused_when_they_are_read_and_when_they_are_decoded(
    tmp_path: Path, pixels: np.ndarray, what: str
):
    where = folder(tmp_path / "scans", {"cat/deep.tif": saved(pixels), "cat/grey.tif": saved(RAMP)})
    options = {"pattern": "{kind}/{file}", "files": {"scans": tmp_path / "scans"}}
    assert where.is_dir()
    with pytest.raises(BadData, match=rf"cat/deep.tif is a TIFF of {what}, .*: save it with 8 or 16 bits, or `accept`"):
        list(image_folder.read(**options))
    assert sum(table.num_rows for table in image_folder.read(**options, accept=["deep.tif"])) == 2
    with pytest.raises(BadImage, match="image 0 of 1 cannot be decoded: its format does not define black and white"):
        decode_images([saved(pixels)], 8)


def test_an_endpoint_is_sent_the_picture_that_every_other_model_sees():
    exif = Image.Exif()
    exif[0x0112] = 6
    for content in (saved(COLOURS, "JPEG", exif=exif), saved(DEEP, "PNG")):
        kind = "image/png" if content.startswith(b"\x89PNG") else "image/jpeg"
        (message,) = make_content([MediaPart(content, kind)])
        head, _, body = message["image_url"]["url"].partition(",")
        assert head == "data:image/png;base64"
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(b64decode(body)))), seen(content))
