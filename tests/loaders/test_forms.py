"""Pictures and sounds in the forms that are asked for, and named transforms held to plain Pillow and NumPy."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest
from encoded_files import picture, sound
from farshift import FarshiftError
from farshift.core.errors import BadData, UnknownName
from farshift.loaders.batching.audio import describe_audio_decoder, read_samples
from farshift.loaders.batching.encoded import BadAudio, BadImage, find_media_type
from farshift.loaders.batching.images import decode_images
from farshift.loaders.batching.input_format import parse_audio_format, parse_image_format
from farshift.loaders.batching.transform import MOMENTS, NAMED, Transform
from PIL import Image
from scipy.io import wavfile


def column(values: list) -> np.ndarray:
    result = np.empty(len(values), object)
    result[:] = values
    return result


def tall(number: int, width: int = 20, height: int = 31) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


FILES = column([tall(number) for number in range(3)])


def test_files_are_images_of_pillow_pixels_of_a_size_or_as_they_are():
    assert parse_image_format("bytes") is None
    images = parse_image_format("PIL")(FILES)
    assert [image.size for image in images] == [(20, 31)] * 3
    np.testing.assert_array_equal(np.asarray(images[1]), np.asarray(Image.open(io.BytesIO(FILES[1]))))
    np.testing.assert_array_equal(parse_image_format(8)(FILES), decode_images(FILES, 8))


@pytest.mark.parametrize("shape", [(9, 7), (9, 7, 3), (3, 9, 7), (9, 7, 1), (1, 9, 7)])
def test_arrays_are_pictures_too(shape):
    given = np.random.default_rng(0).integers(0, 256, (4, *shape), np.uint8)
    item = parse_image_format("PIL")(given)[2]
    assert item.size == (7, 9)
    planes = given[2].squeeze()
    planes = np.moveaxis(planes, 0, -1) if planes.ndim == 3 and planes.shape[0] == 3 else planes
    expected = np.repeat(planes[..., None], 3, axis=2) if planes.ndim == 2 else planes
    np.testing.assert_array_equal(np.asarray(item), expected)
    assert parse_image_format(5)(given).shape == (4, 5, 5, 3)


def test_a_transform_is_its_steps_in_order():
    result = Transform("resize 24 bicubic, crop 20, normalise imagenet").pixels(FILES)
    mean, deviation = (np.array(moments) for moments in MOMENTS["imagenet"])
    for file, pixels in zip(FILES, result, strict=True):
        resized = Image.open(io.BytesIO(file)).resize((24, 37), Image.Resampling.BICUBIC)
        middle = np.asarray(resized.crop((2, 8, 22, 28))) / 255
        np.testing.assert_allclose(pixels, ((middle - mean) / deviation).transpose(2, 0, 1), atol=1e-5)
    assert result.dtype == np.float32
    plain = Transform("resize 6x4").pixels(FILES)
    assert plain.shape == (3, 3, 6, 4)
    assert 0 <= plain.min() <= plain.max() <= 1
    for numbers, name in (("0.5 / 0.5", "half"), ("0.485 0.456 0.406 / .229 .224 .225", "imagenet")):
        by_numbers, by_name = (Transform(f"resize 6x4, normalise {moments}") for moments in (numbers, name))
        np.testing.assert_array_equal(by_numbers.pixels(FILES), by_name.pixels(FILES))
        assert by_numbers.size == (6, 4)


@pytest.mark.parametrize("name", NAMED)
def test_a_named_transform_is_the_steps_it_stands_for(name):
    again = copy.deepcopy(Transform(name))  # as a worker is given it
    np.testing.assert_array_equal(Transform(name).pixels(FILES[:1]), Transform(NAMED[name]).pixels(FILES[:1]))
    assert again.pixels(FILES[:1]).shape == (1, 3, 224, 224)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resize 24", "images of several sizes: add a crop"),
        ("normalise imagenet", "images of several sizes"),
        ("crop 0", "sizes have to be from 1 to 4096"),
        ("normalise clip, crop 8", "normalise has to come last"),
        ("crop 8, turn 9", "unknown step 'turn 9'"),
        (",", "unknown step .."),
        ("crop 8, normalise 0.5 / 0", "deviation has to be above 0"),
        ("crop 8, normalise 0.5 0.5 / 1", "unknown step 'normalise 0.5 0.5 / 1'"),
    ],
)
def test_steps_that_are_none_are_refused(text, message):
    with pytest.raises(FarshiftError, match=message):
        Transform(text)


def test_a_name_that_is_none_is_offered_the_nearest():
    with pytest.raises(UnknownName, match="imagenet"):
        parse_image_format("imagnet")
    for wrong in (0, -1, True, 2.5, None):
        with pytest.raises(FarshiftError, match="use 'bytes', 'PIL', a side"):
            parse_image_format(wrong)
        with pytest.raises(FarshiftError, match="use 'bytes', or a sampling rate"):
            parse_audio_format(wrong)


def test_sounds_are_samples_at_a_rate():
    files = column([sound(3), sound(40)])
    result = parse_audio_format(4000)(files)
    for file, heard in zip(files, result, strict=True):
        np.testing.assert_array_equal(heard, read_samples(file, 4000, "it"))


def test_a_broken_file_is_named_by_its_place():
    with pytest.raises(BadImage, match="image 1 of 2 cannot be decoded") as refused:
        parse_image_format("PIL")(column([FILES[0], FILES[1][:60]]))
    assert refused.value.position == 1
    with pytest.raises(BadImage):
        Transform("imagenet").pixels(column([FILES[0], b""]))
    with pytest.raises(BadAudio, match="audio clip 1 of 2 cannot be decoded") as refused:
        parse_audio_format(8000)(column([sound(1), b"RIFF"]))
    assert refused.value.position == 1


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (picture(form="JPEG"), "image/jpeg"),
        (picture(form="PNG"), "image/png"),
        (picture(form="WEBP"), "image/webp"),
        (picture(form="TIFF"), "image/tiff"),
        (picture(form="BMP"), "image/bmp"),
        (picture(form="GIF"), "image/gif"),
        (sound(), "audio/wav"),
        (b"", "application/octet-stream"),
    ],
)
def test_a_file_is_known_by_its_first_bytes(content, kind):
    assert find_media_type(content) == kind


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


def test_a_machine_without_memory_is_not_a_picture_that_is_broken(monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "resize", full)
    with pytest.raises(MemoryError):
        decode_images([picture(0)], 8)


TONE = np.sin(2 * np.pi * 5 * np.arange(800) / 800)


def wav(values: np.ndarray, rate: int = 800) -> bytes:
    out = io.BytesIO()
    wavfile.write(out, rate, values)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["int16", "int32", "uint8", "float32"])
def test_samples_of_every_width_are_between_minus_one_and_one(kind: str) -> None:
    scaled = {"int16": TONE * 2**15 * 0.99, "int32": TONE * 2**31 * 0.99, "uint8": TONE * 126 + 128, "float32": TONE}
    result = read_samples(wav(scaled[kind].astype(kind)), 800, "it")
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, TONE, atol=0.03)


def test_channels_are_averaged_and_another_rate_is_resampled() -> None:
    two = np.stack([TONE, TONE * 0.5], axis=1).astype(np.float32)
    np.testing.assert_allclose(read_samples(wav(two), 800, "it"), 0.75 * TONE, atol=1e-6)
    half = read_samples(wav(TONE.astype(np.float32)), 400, "it")
    assert half.shape == (400,)
    np.testing.assert_allclose(half[20:-20], TONE[::2][20:-20], atol=0.02)


def test_what_is_no_wav_is_named() -> None:
    with pytest.raises(BadData, match="sound 3 cannot be read as WAV"):
        read_samples(b"no sound", 800, "sound 3")
    assert describe_audio_decoder().split()[0] == "SciPy"
