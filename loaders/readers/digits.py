"""Images of digits and clothes in IDX files, and data sets that are made of them."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_permutation, draw_uniform
from ...core.errors import MissingGeneratorPackage
from ..acquire.archive_files import ArchiveFiles
from ._arrow_types import to_tensor_column
from ._inputs import read_content
from ._layout import iterate_file_tables, read_filled_lines

PUBLISHED_FORM = True


def idx(files: dict[str, Path], *, image: str, label: str, origin: str, parts: dict[str, list[str]]) -> pa.Table:
    """Images and labels in IDX files, the format of MNIST and its successors.

    Fields: `image` (uint8, height x width), `label` (a whole number) and the text `origin`: the published part of the
    row. `parts` gives the pair of files (images, labels) of each part.
    """
    images, labels, number = read_images_and_labels(files, list(parts.values()))
    names = np.array(list(parts))[number]
    return pa.table({image: to_tensor_column(images), label: labels, origin: pa.array(names.tolist())})


def qmnist(files: dict[str, Path], *, images: str, labels: str, extended: str) -> pa.Table:
    """MNIST's digits with NIST's metadata: the writer, and whether they were census staff or a student.

    QMNIST (Yadav and Bottou 2019, Cold Case: the Lost MNIST Digits, arXiv:1905.10498) gives for each MNIST digit, in
    its order, eight numbers: the digit, the NIST series (hsf), the writer, the number of the digit among the writer's,
    and its position in NIST's own files.

    Fields: `image` (uint8, 28 x 28), `digit`, `series` (NIST's hsf, such as "0") and `writer` (its number as text), for
    each digit of the IDX files `images` and `labels`. `extended` is in the same order.
    """
    pixels, digits, _ = read_images_and_labels(files, [[images, labels]])
    known = read_idx(extended, files[extended], ">i4").astype(np.int64)
    return pa.table(
        {
            "image": to_tensor_column(pixels),
            "digit": digits,
            "series": pa.array(known[:, 1].astype(str).tolist()),
            "writer": pa.array(known[:, 2].astype(str).tolist()),
        }
    )


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
    two classes by name and number. No image is used twice, and each class is used equally often (`rows` is a multiple
    of 4).
    """
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
    for number, code in enumerate(half["classes"].values()):
        places = np.flatnonzero(labels == code)
        need = np.flatnonzero(classes == number)
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
        frame = [((SIDE - side) // 2,) * 2 for side in images.shape[1:]]
        yield from _iterate_tables(np.pad(images, ((0, 0), *frame)), digits, "mnist", part)
    for part, (file, name) in usps.items():
        table = read_rdata(file, files[file])[name]
        images = np.rint((table[:, 1:] + 1) * 127.5).astype(np.uint8).reshape(-1, 16, 16)
        digits = table[:, 0].astype(np.int64)
        yield from _iterate_tables(np.repeat(np.repeat(images, 2, axis=1), 2, axis=2), digits, "usps", part)
    for part, (folder, labels) in mnist_m_parts.items():
        yield from iterate_file_tables(_iterate_mnist_m(files[mnist_m], folder, labels, part))


def _iterate_mnist_m(
    tree: ArchiveFiles, folder: str, labels: str, part: str
) -> Iterator[tuple[str, NDArray[np.uint8], dict[str, Any]]]:
    """Yield each image, a PNG; the format is lossless, so the pixels are the same with every decoder."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingGeneratorPackage("decoding images", "train") from error
    digit_of = dict(line.split() for line in read_filled_lines(tree, labels))
    for name, content in tree.walk(lambda name: name.startswith(f"{folder}/")):
        with Image.open(io.BytesIO(content), formats=["PNG"]) as opened:
            pixels = np.asarray(opened.convert("RGB"))
        yield "image", pixels, {"digit": int(digit_of[name.rpartition("/")[2]]), "domain": "mnist_m", "published": part}


def _iterate_tables(images: NDArray[np.uint8], digits: NDArray[np.int64], domain: str, part: str) -> Iterator[pa.Table]:
    for start in range(0, len(images), _PIECE):
        pixels = np.repeat(images[start : start + _PIECE, ..., None], 3, axis=3)
        constants = {name: pa.repeat(value, len(pixels)) for name, value in (("domain", domain), ("published", part))}
        yield pa.table({"image": to_tensor_column(pixels), "digit": digits[start : start + _PIECE]} | constants)


def read_idx(name: str, path: Path, item: str = "u1") -> NDArray[Any]:
    """Read a file in the IDX format of the MNIST family, perhaps compressed: a magic number, the sizes, then values in
    C order. Raises `ValueError` if the sizes are not those of the values."""
    content = read_content(name, path)
    start = 4 + 4 * content[3]
    return np.frombuffer(content[start:], item).reshape(np.frombuffer(content[4:start], ">u4").astype(np.int64))


def read_images_and_labels(
    files: dict[str, Path], pairs: list[list[str]]
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """Read `pairs` of files (images, labels) and concatenate them: images (rows, height, width), labels (rows,), and
    the index of each row's pair, (rows,)."""
    read = [(read_idx(first, files[first]), read_idx(second, files[second])) for first, second in pairs]
    origin = np.repeat(np.arange(len(read)), [len(labels) for _, labels in read])
    images = np.concatenate([images for images, _ in read])
    return images, np.concatenate([labels for _, labels in read]).astype(np.int64), origin


_SYMBOL, _PAIRLIST, _NULL, _HAS_ATTRIBUTES = 1, 2, 254, 0x200
"""Types of R's serialisation, and the flag of a value with attributes."""
_VECTORS = {13: ">i4", 14: ">f8"}


def read_rdata(name: str, path: Path) -> dict[str, NDArray[Any]]:
    """Read the matrices and vectors of numbers of an RData file by name, without R.

    The format is R's serialisation in XDR (big-endian), version 2 (R Internals, section 1.8): after the header "RDX2"
    and three versions a list of names and values. A matrix is its numbers, column by column, with the attribute `dim`.
    Raises `ValueError` for any other object, and if the file is cut off; no code of the file is run.
    """
    content, at = read_content(name, path), 7 + 3 * 4

    def read_integer() -> int:
        nonlocal at
        at += 4
        return int.from_bytes(content[at - 4 : at], "big", signed=True)

    def read_pairs() -> dict[str, NDArray[Any]]:
        nonlocal at
        pairs: dict[str, NDArray[Any]] = {}
        while (kind := read_integer() & 255) == _PAIRLIST and read_integer() & 255 == _SYMBOL:
            _, length = read_integer(), read_integer()
            tag = content[at : at + length].decode()
            at += length
            flags = read_integer()
            if flags & 255 not in _VECTORS:
                raise ValueError(f"{tag} is an R object of type {flags & 255}, not numbers")
            values = np.frombuffer(content, _VECTORS[flags & 255], read_integer(), at)
            at += values.nbytes
            shape = read_pairs().get("dim", [-1]) if flags & _HAS_ATTRIBUTES else [-1]
            pairs[tag] = values.reshape(shape, order="F")
        if kind != _NULL:
            raise ValueError("cut off, or an R object other than numbers")
        return pairs

    return read_pairs()
