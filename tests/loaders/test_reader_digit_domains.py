"""Digits of three collections as pictures of one size; R's files are read, and nothing of them is run."""

from __future__ import annotations

import gzip
import io
import struct

import numpy as np
import pyarrow as pa
import pytest
from encoded_files import folder
from farshift.core.errors import BadData
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.readers.digits import digit_domains, read_rdata
from PIL import Image


def symbol(name: str) -> bytes:
    return struct.pack(">iii", 1, 9, len(name)) + name.encode()


def matrix(values: np.ndarray) -> bytes:
    """A matrix as R serialises it: its numbers column by column, then the attribute `dim`."""
    reals = struct.pack(">ii", 14 | 0x200, values.size) + values.T.astype(">f8").tobytes()
    dim = struct.pack(">ii", 13, 2) + np.array(values.shape, ">i4").tobytes()
    return reals + struct.pack(">i", 2 | 0x400) + symbol("dim") + dim + struct.pack(">i", 254)


def saved(name: str, item: bytes) -> bytes:
    head = b"RDX2\nX\n" + struct.pack(">iii", 2, 0x30000, 0x20300)
    return gzip.compress(head + struct.pack(">i", 2 | 0x400) + symbol(name) + item + struct.pack(">i", 254))


def png(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def idx(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes() + values.astype("u1").tobytes()


@pytest.fixture
def digits(tmp_path):
    grey = np.arange(28 * 28, dtype=np.uint8).reshape(1, 28, 28)
    colours = np.arange(32 * 32 * 3, dtype=np.uint8).reshape(32, 32, 3)
    numbers = np.concatenate([[[7.0]], np.linspace(-1, 1, 256)[None]], axis=1)
    (tmp_path / "images").write_bytes(idx(grey))
    (tmp_path / "labels").write_bytes(idx(np.array([5])))
    (tmp_path / "zip.RData").write_bytes(saved("zip.train", matrix(numbers)))
    tree = folder(tmp_path / "m", {"train/0.png": png(colours), "labels.txt": b"0.png 3\n"})
    files = {name: tmp_path / name for name in ("images", "labels", "zip.RData")}
    return files | {"m": open_archive(tree)}, (grey, colours, numbers), tmp_path


def read(files) -> pa.Table:
    options = {"mnist": {"train": ["images", "labels"]}, "usps": {"train": ["zip.RData", "zip.train"]}}
    options |= {"mnist_m": "m", "mnist_m_parts": {"train": ["train", "labels.txt"]}}
    return pa.concat_tables(digit_domains(files, **options))


def test_every_digit_has_32_pixels_a_side_and_three_channels_without_interpolation(digits):
    files, (grey, colours, numbers), _ = digits
    table = read(files)
    assert table["domain"].to_pylist() == ["mnist", "usps", "mnist_m"]
    assert table["digit"].to_pylist() == [5, 7, 3]
    mnist, usps, mnist_m = np.array(table["image"].to_pylist(), np.uint8).reshape(3, 32, 32, 3)
    np.testing.assert_array_equal(mnist[2:30, 2:30, 1], grey[0])
    assert not mnist[[0, 1, 30, 31]].any()
    np.testing.assert_array_equal(mnist_m, colours)
    small = np.rint((numbers[0, 1:] + 1) * 127.5).reshape(16, 16)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        np.testing.assert_array_equal(usps[row::2, column::2, 2], small)


def test_what_is_cut_off_or_has_no_label_is_named(digits):
    files, _, position = digits
    (position / "m/train/1.png").write_bytes(b"\x89PNG")
    with pytest.raises(BadData, match=r"labels\.txt has no label for train/1\.png"):
        read(files | {"m": open_archive(position / "m")})
    (position / "m/labels.txt").write_bytes(b"0.png 3\n1.png 4\n")
    with pytest.raises(BadData, match=r"train/1\.png is not a complete PNG: \S+"):
        read(files | {"m": open_archive(position / "m")})
    (position / "m/train/1.png").unlink()
    with pytest.raises(BadData, match=r"labels\.txt has 2 labels, but train has 1 images"):
        read(files | {"m": open_archive(position / "m")})


def test_a_file_of_r_that_holds_a_function_or_is_cut_off_is_refused(digits, tmp_path):
    files, _, _ = digits
    full = gzip.decompress(files["zip.RData"].read_bytes())
    for content, output in (
        (saved("f", struct.pack(">i", 3)), r"holds an R language object \(type 3\), not data"),
        (gzip.compress(full[:200]), "cut off, or not what R writes"),
        (files["zip.RData"].read_bytes()[:100], "cannot be read, or is cut off"),
        (b"RDA2\nA\n", "not a file that R saved in its binary format"),
    ):
        (tmp_path / "bad.RData").write_bytes(content)
        with pytest.raises(BadData, match=output):
            read_rdata("bad.RData", tmp_path / "bad.RData")
