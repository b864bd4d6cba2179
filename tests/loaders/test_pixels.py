"""Pictures decoded once into the cache, and read from there some rows at a time."""

from __future__ import annotations

import numpy as np
import pytest
from encoded_files import picture
from farshift.core.errors import UnknownName
from farshift.core.progress import report_to
from farshift.loaders.batching import pixels
from farshift.loaders.batching.encoded import BadImage
from farshift.loaders.batching.images import decode_images
from farshift.loaders.cache.entries import list_entries
from farshift.loaders.decoders import Decoder, load_decoder
from support import Heard

FILES = [picture(number, side=20) for number in range(40)]


def never(*_: object) -> None:
    raise AssertionError("decoded again")


def test_pixels_are_those_that_the_decoder_gives(cache):
    result = pixels.open_pixels(FILES, 8)
    assert result.shape == (40, 8, 8, 3)
    rows = np.array([3, 39, 0, 3])
    np.testing.assert_array_equal(result.take(rows), decode_images(FILES, 8)[rows])
    np.testing.assert_array_equal(np.concatenate(list(pixels.iterate_pieces(result))), decode_images(FILES, 8))
    out = np.empty((4, 8, 8, 3), np.uint8)
    assert result.take(rows, out) is out
    np.testing.assert_array_equal(out, decode_images(FILES, 8)[rows])


def test_many_pieces_keep_the_order(cache, monkeypatch):
    monkeypatch.setattr("farshift.loaders.batching.images._PIECE_BYTES", 8 * 8 * 3 * 7)
    monkeypatch.setattr("farshift.loaders.batching.images._AT_ONCE", 2)
    full = np.stack([load_decoder().decode(content, 8) for content in FILES])
    np.testing.assert_array_equal(decode_images(FILES, 8), full)
    np.testing.assert_array_equal(pixels.open_pixels(FILES, 8).take(np.arange(40)), full)


def test_the_second_time_nothing_is_decoded(cache, monkeypatch):
    first = pixels.open_pixels(FILES, 8).take(np.arange(40))
    monkeypatch.setattr(pixels, "iterate_decoded", never)
    again = pixels.open_pixels(FILES, 8)
    assert isinstance(again, pixels.ArrayPixels)
    assert isinstance(again.array, np.memmap)
    np.testing.assert_array_equal(again.take(np.arange(40)), first)


def test_other_pictures_sides_orders_and_versions_have_entries_of_their_own(cache, monkeypatch):
    keys = {pixels.open_pixels(FILES, 8).key, pixels.open_pixels(FILES, 9).key, pixels.open_pixels(FILES[1:], 8).key}
    keys.add(pixels.open_pixels(FILES[::-1], 8).key)
    by = load_decoder()
    monkeypatch.setattr(pixels, "load_decoder", lambda name: Decoder(name, "Pillow 0.0", by.decode))
    keys.add(pixels.open_pixels(FILES, 8).key)
    assert len(keys) == len(list_entries("images")) == 5


def test_what_would_not_fit_is_decoded_when_it_is_read_and_a_line_says_so(cache, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE_LIMIT", "5kB")
    monkeypatch.setattr(pixels, "_TOLD_FROM", 0)
    with report_to(output := Heard()):
        result = pixels.open_pixels(FILES, 8)
    assert output.lines == ["40 images are decoded on each read: 7.7 kB decoded, and FARSHIFT_CACHE_LIMIT is 5.0 kB"]
    assert isinstance(result, pixels.EncodedPixels)
    rows = np.array([7, 1])
    np.testing.assert_array_equal(result.take(rows), decode_images(FILES, 8)[rows])
    np.testing.assert_array_equal(np.concatenate(list(pixels.iterate_pieces(result))), decode_images(FILES, 8))
    assert not list_entries("images")
    monkeypatch.delenv("FARSHIFT_CACHE_LIMIT")
    assert pixels.open_pixels(FILES, 8).key == result.key


def test_a_picture_that_cannot_be_decoded_is_named_and_leaves_nothing(cache):
    broken = [*FILES[:20], FILES[20][:150], *FILES[21:]]
    with pytest.raises(BadImage, match="image 20 of 40 cannot be decoded") as refused:
        pixels.open_pixels(broken, 8)
    assert refused.value.position == 20
    assert not list_entries("images")


def test_read_on_the_fly_a_broken_picture_is_named_by_its_place_among_all():
    broken = [*FILES[:20], FILES[20][:150]]
    result = pixels.EncodedPixels(broken, 8, load_decoder(), "key")
    with pytest.raises(BadImage, match="image 20 of 21 cannot be decoded"):
        result.take(np.array([3, 20]))


def test_a_decoder_that_there_is_not_is_refused():
    with pytest.raises(UnknownName, match="decoder"):
        pixels.open_pixels(FILES, 8, "no-such")
