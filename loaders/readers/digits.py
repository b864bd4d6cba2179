"""Images of digits and clothes in IDX files, and data sets that are made of them."""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_permutation, draw_uniform
from ...core.errors import BadData, BadDefinition, MissingGeneratorPackage, get_first_line
from ..acquire.archive_files import ArchiveFiles
from ._arrow_types import to_tensor_column
from ._rdata import read_rdata


def idx(files: dict[str, Path], *, image: str, label: str, origin: str, parts: dict[str, list[str]]) -> pa.Table:
    """Images and labels in IDX files, the format of MNIST and its successors.

    Fields: `image` (uint8, height x width), `label` (a whole number) and the text `origin`: the published part of the
    row. `parts` gives the pair of files (images, labels) of each part.
    """
    images, labels, number = read_images_and_labels(files, list(parts.values()))
    names = np.array(list(parts))[number]
    return pa.table({image: to_tensor_column(images), label: labels, origin: pa.array(names.tolist())})


_INTEGERS_2D = b"\0\0\x0c\x02"
"""The magic number of an IDX file of 32-bit integers with two axes."""


def qmnist(files: dict[str, Path], *, images: str, labels: str, extended: str) -> pa.Table:
    """MNIST's digits with NIST's metadata: the writer, and whether they were census staff or a student.

    QMNIST (Yadav and Bottou 2019, Cold Case: the Lost MNIST Digits, arXiv:1905.10498) gives for each MNIST digit, in
    its order, eight numbers: the digit, the NIST series (hsf), the writer, the number of the digit among the writer's,
    and its position in NIST's own files.

    Fields: `image` (uint8, 28 x 28), `digit`, `series` (NIST's hsf, such as "0") and `writer` (its number as text), for
    each digit of the IDX files `images` and `labels`. `extended` must be in the same order: raises `BadData` if the
    digits differ.
    """
    pixels, digits, _ = read_images_and_labels(files, [[images, labels]])
    known = _read_extended_labels(files[extended], extended)
    if known.shape != (len(digits), 8):
        raise BadData(f"{extended} has shape {known.shape}, but {images} has {len(digits)} digits")
    if wrong := int((known[:, 0] != digits).sum()):
        raise BadData(f"{extended} is in another order than {labels}: {wrong} of {len(digits)} digits differ")
    return pa.table(
        {
            "image": to_tensor_column(pixels),
            "digit": digits,
            "series": pa.array(known[:, 1].astype(str).tolist()),
            "writer": pa.array(known[:, 2].astype(str).tolist()),
        }
    )


def _read_extended_labels(path: Path, name: str) -> NDArray[np.int64]:
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise BadData(f"{name}: a damaged gzip file: {error}") from error
    rows, columns = np.frombuffer(content[4:12], ">u4").tolist() if content.startswith(_INTEGERS_2D) else (0, 0)
    if not rows or len(content) != 12 + 4 * rows * columns:
        raise BadData(f"{name}: not an IDX file of 32-bit integers with two axes, or cut off")
    return np.frombuffer(content[12:], ">i4").reshape(rows, columns).astype(np.int64)


_COLOURS = np.array(["red", "green"])


def coloured_digits(
    files: dict[str, Path],
    *,
    pairs: list[list[str]],
    deals: list[dict[str, Any]],
    noise: float,
    stride: int,
    seed: str,
) -> pa.Table:
    """ColoredMNIST: digits of two colours, where in training colour predicts the label better than shape.

    After Arjovsky et al. 2019 (Invariant Risk Minimization, arXiv 1907.02893, section 5.2) and Gulrajani and Lopez-Paz
    2021 (DomainBed, arXiv 2007.01434): the label is whether the digit is below 5, flipped with a fixed probability
    (`noise`); the colour is the label, flipped with a probability that depends on the environment. Every draw is a pure
    function of `seed` and of the image's index in the files.

    Columns `image` (uint8, 2 x height x width: the red channel, then the green one), `label` (1 for digits 0 to 4
    before the noise), and the metadata `digit`, `colour` and `environment`.

    pairs: the files (images, labels), concatenated. deals: each shuffles the images `rows` = [first, last), and
    distributes the first `take` of them (by default all) to its `environments` (name: the probability that colour and
    label differ) in turn. stride: every stride-th row and column of pixels is kept.
    """
    images, digits, _ = read_images_and_labels(files, pairs)
    places, names, flips = [], [], []
    for deal in deals:
        first, last = deal["rows"]
        if not 0 <= first < last <= len(images):
            raise BadDefinition(f"rows = {deal['rows']}, but there are {len(images)} images")
        order = first + draw_permutation(f"{seed}/order", np.arange(first, last, dtype=np.uint64))[: deal.get("take")]
        turn = np.arange(len(order)) % len(deal["environments"])
        places.append(order)
        names.append(np.array(list(deal["environments"]))[turn])
        flips.append(np.array(list(deal["environments"].values()), np.float64)[turn])
    indices, environment = np.concatenate(places), np.concatenate(names)
    counter = indices.astype(np.uint64)
    label = (digits[indices] < 5) ^ (draw_uniform(f"{seed}/noise", counter) < noise)
    colour = (label ^ (draw_uniform(f"{seed}/colour", counter) < np.concatenate(flips))).astype(np.int64)
    grey = images[indices, ::stride, ::stride]
    inks = np.zeros((len(indices), 2, *grey.shape[1:]), np.uint8)
    inks[np.arange(len(indices)), colour] = grey
    return pa.table(
        {
            "image": to_tensor_column(inks),
            "label": label.astype(np.int64),
            "digit": digits[indices],
            "colour": _COLOURS[colour].tolist(),
            "environment": environment.tolist(),
        }
    )


_BITS = 14
"""Fractional bits of sine and cosine. A position has one more, since the centre is between two pixels."""


def rotated_digits(
    files: dict[str, Path], *, pairs: list[list[str]], angles: list[int], take: int, seed: str
) -> pa.Table:
    """RotatedMNIST: each digit is rotated by the angle of its environment (Ghifary et al. 2015, arXiv 1508.07680; six
    angles as in DomainBed, arXiv 2007.01434).

    Rotation uses bilinear interpolation in integer arithmetic, so that the pixels are the same on every platform.

    Columns `image` (uint8), `digit`, and the text `angle` (degrees, counter-clockwise). The images of all `pairs` of
    files are shuffled, and the first `take` of them are assigned to the angles in turn.
    """
    images, digits, _ = read_images_and_labels(files, pairs)
    if not 0 < take <= len(images):
        raise BadDefinition(f"take = {take}, but there are {len(images)} images")
    indices = draw_permutation(f"{seed}/order", np.arange(len(images), dtype=np.uint64))[:take]
    turned = images[indices]
    for number, angle in enumerate(angles):
        turned[number :: len(angles)] = rotate_images(turned[number :: len(angles)], angle)
    names = np.array([str(angle) for angle in angles])[np.arange(take) % len(angles)]
    return pa.table({"image": to_tensor_column(turned), "digit": digits[indices], "angle": names.tolist()})


def rotate_images(images: NDArray[np.uint8], degrees: float) -> NDArray[np.uint8]:
    """Rotate square images (rows, side, side) counter-clockwise about their centre; pixels from outside are 0."""
    side = images.shape[1]
    cosine, sine = (round(2**_BITS * turn(math.radians(degrees))) for turn in (math.cos, math.sin))
    # Twice the distance from the centre, and positions in units of 2^-(bits + 1) pixels.
    down, right = np.meshgrid(*[2 * np.arange(side, dtype=np.int64) - (side - 1)] * 2, indexing="ij")
    middle, unit = (side - 1) << _BITS, 1 << (_BITS + 1)
    column = cosine * right - sine * down + middle
    row = sine * right + cosine * down + middle
    total = np.zeros(images.shape, np.int64)
    for below, across in ((0, 0), (0, 1), (1, 0), (1, 1)):
        y, x = row // unit + below, column // unit + across
        weight_y = row % unit if below else unit - row % unit
        weight_x = column % unit if across else unit - column % unit
        inside = (y >= 0) & (y < side) & (x >= 0) & (x < side)
        weight = np.where(inside, weight_y * weight_x, 0)
        total += images[:, np.clip(y, 0, side - 1), np.clip(x, 0, side - 1)] * weight
    return ((total + unit * unit // 2) // (unit * unit)).astype(np.uint8)


def dominoes(files: dict[str, Path], *, upper: dict[str, Any], lower: dict[str, Any], rows: int, seed: str) -> pa.Table:
    """Dominoes: one image above another, where the upper, simpler image may predict the label of the lower one.

    After Shah et al. 2020 (The Pitfalls of Simplicity Bias, arXiv 2006.07710), with clothing in place of CIFAR as in
    Pagliardini et al. 2023 (D-BAT, arXiv 2202.04414). Here the two halves are drawn independently of each other; a
    split chooses the training pairs, and with them the correlation.

    Columns `image` (uint8, twice as high as wide), `label` (0 or 1: the class of the lower half) and the text `above`
    (the name of the upper half's class). `upper` and `lower` have `pair`, the files (images, labels), and `classes`,
    two classes by name and number. No image is used twice, and each class is used equally often.
    """
    if rows % 4:
        raise BadDefinition(f"rows = {rows}: must be a multiple of 4, with one quarter for each pair of classes")
    counter = np.arange(rows)
    above, label = counter % 2, counter // 2 % 2
    top = _draw_images(files, upper, above, f"{seed}/upper")
    bottom = _draw_images(files, lower, label, f"{seed}/lower")
    names = np.array(list(upper["classes"]))[above]
    image = np.concatenate([top, bottom], axis=1)
    return pa.table({"image": to_tensor_column(image), "label": label, "above": names.tolist()})


def _draw_images(
    files: dict[str, Path], half: dict[str, Any], classes: NDArray[np.int64], stream: str
) -> NDArray[np.uint8]:
    """Draw an image of the given class, 0 or 1, for each row."""
    images, labels, _ = read_images_and_labels(files, [half["pair"]])
    chosen = np.zeros(len(classes), np.int64)
    for number, (name, code) in enumerate(half["classes"].items()):
        places = np.flatnonzero(labels == code)
        need = np.flatnonzero(classes == number)
        if len(need) > len(places):
            raise BadDefinition(f"{len(need)} images of {name} are needed, but there are {len(places)}")
        chosen[need] = places[draw_permutation(stream, places.astype(np.uint64))[: len(need)]]
    return images[chosen]


SIDE = 32
_PIECE = 4096


def digit_domains(
    files: dict[str, Any],
    *,
    mnist: dict[str, list[str]],
    usps: dict[str, list[str]],
    mnist_m: str,
    mnist_m_parts: dict[str, list[str]],
) -> Iterator[pa.Table]:
    """Handwritten digits of three collections as images of one size: MNIST, USPS, and MNIST-M (digits on photos).

    Nothing is interpolated, so that the pixels are the same on every platform: MNIST (28 x 28) gets a black border of
    two pixels, each pixel of USPS (16 x 16) becomes two by two, MNIST-M is 32 x 32 as published. Grey images have three
    equal channels.

    Fields: `image` (uint8, 32 x 32 x 3), `digit`, `domain` (mnist, usps or mnist_m) and `published` (train or test).

    Options by published part: `mnist`, the files of images and labels; `usps`, the RData file and the object in it (a
    digit and 256 numbers from -1 to 1 per row); `mnist_m_parts`, the folder and the list of labels in the tree
    `mnist_m`.
    """
    for part, pair in mnist.items():
        images, digits, _ = read_images_and_labels(files, [pair])
        yield from _iterate_tables(_add_frame(images), digits, "mnist", part)
    for part, (file, name) in usps.items():
        images, digits = _read_usps(files[file], file, name)
        yield from _iterate_tables(np.repeat(np.repeat(images, 2, axis=1), 2, axis=2), digits, "usps", part)
    for part, (folder, labels) in mnist_m_parts.items():
        yield from _read_mnist_m(files[mnist_m], folder, labels, part)


def _add_frame(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = images.shape[1:]
    return np.pad(images, ((0, 0), *(((SIDE - side) // 2,) * 2 for side in (height, width))))


def _read_usps(path: Path, file: str, name: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    objects = read_rdata(path, file)
    if name not in objects:
        raise BadData(f"{file} has no object {name} (it has {', '.join(sorted(objects))})")
    table = objects[name].matrix()
    if table.ndim != 2 or table.shape[1] != 257 or not (np.abs(table[:, 1:]) <= 1).all():
        raise BadData(f"{file}: {name} has shape {table.shape}, not a digit and 256 numbers from -1 to 1 per row")
    pixels = np.rint((table[:, 1:] + 1) * 127.5).astype(np.uint8).reshape(-1, 16, 16)
    return pixels, table[:, 0].astype(np.int64)


def _read_mnist_m(tree: ArchiveFiles, folder: str, labels: str, part: str) -> Iterator[pa.Table]:
    listed = dict(line.split() for line in tree.read(labels).decode().splitlines() if line.strip())
    images: list[NDArray[np.uint8]] = []
    digits: list[int] = []
    seen = 0
    for name, content in tree.walk(lambda name: name.startswith(f"{folder}/")):
        short = name.rpartition("/")[2]
        if short not in listed:
            raise BadData(f"{tree.where}: {labels} has no label for {name}")
        images.append(_decode_pixels(content, f"{tree.where}: {name}"))
        digits.append(int(listed[short]))
        seen += 1
        if len(images) == _PIECE:
            yield from _iterate_tables(np.stack(images), np.array(digits), "mnist_m", part)
            images, digits = [], []
    if seen != len(listed):
        raise BadData(f"{tree.where}: {labels} has {len(listed)} labels, but {folder} has {seen} images")
    if images:
        yield from _iterate_tables(np.stack(images), np.array(digits), "mnist_m", part)


def _decode_pixels(content: bytes, where: str) -> NDArray[np.uint8]:
    """Decode a PNG. The format is lossless, so the pixels are the same with every decoder."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingGeneratorPackage("decoding images", "train") from error
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as opened:
            pixels = np.asarray(opened.convert("RGB"))
    except MemoryError:  # not an error of the image
        raise
    except Exception as error:  # a decoder may raise any exception on damaged input
        raise BadData(f"{where} is not a complete PNG: {get_first_line(error)}") from error
    if pixels.shape != (SIDE, SIDE, 3):
        raise BadData(f"{where} has {pixels.shape[1]} x {pixels.shape[0]} pixels, not {SIDE} x {SIDE}")
    return pixels


def _iterate_tables(images: NDArray[np.uint8], digits: NDArray[np.int64], domain: str, part: str) -> Iterator[pa.Table]:
    for start in range(0, len(images), _PIECE):
        some = images[start : start + _PIECE]
        pixels = some if some.ndim == 4 else np.repeat(some[..., None], 3, axis=3)
        constant = {name: pa.repeat(value, len(some)) for name, value in (("domain", domain), ("published", part))}
        columns = {"image": to_tensor_column(pixels), "digit": digits[start : start + _PIECE].astype(np.int64)}
        yield pa.table(columns | constant)


_GZIP = b"\x1f\x8b"
_UNSIGNED_BYTE = 8


def read_idx(name: str, path: Path) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes. Raises `BadData` if the file has another format or is cut off."""
    content = path.read_bytes()
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise BadData(f"{name}: a damaged gzip file: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] != _UNSIGNED_BYTE or not content[3]:
        raise BadData(f"{name}: not an IDX file of unsigned bytes")
    start = 4 + 4 * content[3]
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">u4"))
    values = np.frombuffer(content[start:], np.uint8)
    if len(shape) != content[3] or values.size != np.prod(shape, dtype=np.int64):
        raise BadData(f"{name}: its header says {'x'.join(map(str, shape))} bytes, but it holds {values.size}")
    return values.reshape(shape)


def read_images_and_labels(
    files: dict[str, Path], pairs: list[list[str]]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Read `pairs` of files (images, labels) and concatenate them: images (rows, height, width), labels (rows,), and
    the index of each row's pair, (rows,)."""
    absent = sorted({name for pair in pairs for name in pair} - files.keys())
    if absent:
        raise BadDefinition(f"the distribution has no file {', '.join(absent)}")
    read = [(read_idx(first, files[first]), read_idx(second, files[second])) for first, second in pairs]
    for (images, labels), (first, second) in zip(read, pairs, strict=True):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise BadData(f"{first} holds {images.shape}, {second} {labels.shape}: not images and their labels")
    origin = np.repeat(np.arange(len(read)), [len(labels) for _, labels in read])
    images = np.concatenate([images for images, _ in read])
    return images, np.concatenate([labels for _, labels in read]).astype(np.int64), origin
