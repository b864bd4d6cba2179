"""Digits, and pictures joined with what people said of them: MNIST and what is drawn from it, CIFAR with human labels."""

from __future__ import annotations

import gzip
import io
import json
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from encoded_files import folder, picture
from farshift.core.errors import BadData, BadDefinition, UnknownName
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers import cifar, together
from farshift.loaders.readers.digits import (
    coloured_digits,
    digit_domains,
    dominoes,
    qmnist,
    read_idx,
    read_rdata,
    rotate_images,
    rotated_digits,
)
from farshift.loaders.readers.digits import idx as read
from farshift.splits.schema import Field, Schema
from hypothesis import given
from hypothesis import strategies as st
from idx_files import digits, idx
from PIL import Image
from scipy import ndimage
from twins import tar

PAIR = ["some-images", "some-labels"]


def pixels(table, *shape: int):
    return table["image"].combine_chunks().flatten().to_numpy().reshape(-1, *shape)


def raw(path: Path, side: int = 28) -> np.ndarray:
    return np.frombuffer(path.read_bytes()[16:], np.uint8).reshape(-1, side, side)


def test_images_labels_and_the_published_part_are_read_zipped_or_not(tmp_path):
    files = digits(tmp_path, 20, "a") | digits(tmp_path, 10, "b", zipped=True)
    parts = {"train": ["a-images", "a-labels"], "test": ["b-images", "b-labels"]}
    table = read(files, image="image", label="digit", origin="published", parts=parts)
    assert Counter(table["published"].to_pylist()) == {"train": 20, "test": 10}
    assert table["digit"].to_pylist() == [*range(10), *range(10), *range(10)]
    assert (pixels(table, 28, 28)[:20] == raw(files["a-images"])).all()
    for content in (idx(np.zeros((3, 2), np.uint8))[:-1], idx(np.zeros((3, 2), np.uint8)) + b"\0"):
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ValueError, match="cannot reshape"):
            read_idx("x", tmp_path / "x")
    (tmp_path / "x").write_bytes(b"\x1f\x8b\x08\0")
    with pytest.raises(BadData, match="x cannot be read, or is cut off"):
        read_idx("x", tmp_path / "x")


def coloured(tmp_path, count: int, stride: int = 2, side: int = 8, **changes):
    options = {"pairs": [PAIR], "noise": 0.25, "stride": stride, "seed": "s"}
    return coloured_digits(digits(tmp_path, count, side=side), **(options | changes))


def test_label_and_colour_are_wrong_at_the_rates_of_their_environment(tmp_path):
    deals = [{"rows": [0, 10000], "environments": {"20 %": 0.2, "10 %": 0.1}}]
    deals.append({"rows": [10000, 20000], "take": 900, "environments": {"90 %": 0.9}})
    table = coloured(tmp_path, 20000, side=2, deals=deals)
    digit, label = np.array(table["digit"]), np.array(table["label"])
    green, environment = np.array(table["colour"]) == "green", np.array(table["environment"])
    assert Counter(environment.tolist()) == {"20 %": 5000, "10 %": 5000, "90 %": 900}
    assert abs(((digit < 5) != label).mean() - 0.25) < 0.02
    for name, rate in (("20 %", 0.2), ("10 %", 0.1), ("90 %", 0.9)):
        rows = environment == name
        assert abs((green != label)[rows].mean() - rate) < 0.035, name
        # The colour knows of the label, not of the digit: given the label it says nothing more.
        assert abs((green != label)[rows & ((digit < 5) != label)].mean() - rate) < 0.08, name


def test_a_colour_is_the_one_channel_that_has_the_digit(tmp_path):
    table = coloured(tmp_path, 100, deals=[{"rows": [0, 100], "environments": {"even": 0.5}}])
    inks, green = pixels(table, 2, 4, 4), np.array(table["colour"]) == "green"
    assert 0 < green.sum() < 100 and not inks[green, 0].any() and not inks[~green, 1].any()
    kept = np.ascontiguousarray(raw(tmp_path / "some-images", 8)[:, ::2, ::2])
    assert Counter(x.tobytes() for x in inks.max(1)) == Counter(x.tobytes() for x in kept)


def test_no_image_is_dealt_out_twice_and_a_smaller_take_is_part_of_a_larger_one(tmp_path):
    def deal(take: int):
        deals = [{"rows": [0, 300], "take": take, "environments": {"a": 0.1, "b": 0.2, "c": 0.9}}]
        table = coloured(tmp_path, 300, stride=1, deals=deals)
        names = zip(pixels(table, 2, 64), table["label"].to_pylist(), table["environment"].to_pylist(), strict=True)
        return {(image.tobytes(), label, name) for image, label, name in names}

    assert len(deal(300)) == 300 and deal(60) < deal(300)


IMAGE = np.random.default_rng(0).integers(0, 256, (2, 28, 28), dtype=np.uint8)


@pytest.mark.parametrize("angle", [15, 45, 75, -20, 100])
def test_a_turn_is_that_of_scipy_within_one_grey_level(angle):
    # SciPy's sense depends on the order of the axes: counter-clockwise is the quarter turn that numpy.rot90 makes.
    quarter = ndimage.rotate(IMAGE.astype(float), 90, axes=(2, 1), reshape=False, order=1)
    sense = 1 if np.allclose(quarter, np.rot90(IMAGE, axes=(1, 2)), atol=1e-6) else -1
    expected = ndimage.rotate(IMAGE.astype(float), sense * angle, axes=(2, 1), reshape=False, order=1, prefilter=False)
    inside = np.hypot(*np.meshgrid(np.arange(28) - 13.5, np.arange(28) - 13.5)) < 12
    assert np.abs(rotate_images(IMAGE, angle) - expected)[:, inside].max() <= 1


@given(st.integers(-4, 4), st.integers(1, 3).map(lambda half: 2 * half + 1))
def test_quarter_turns_are_exact(quarters, side):
    image = np.arange(side * side, dtype=np.uint8).reshape(1, side, side)
    assert (rotate_images(image, 90 * quarters) == np.rot90(image, quarters, axes=(1, 2))).all()


def test_no_turn_leaves_a_digit_and_each_angle_has_as_many(tmp_path):
    files = digits(tmp_path, 60)
    table = rotated_digits(files, pairs=[PAIR], angles=[0, 15, 75], take=30, seed="s")
    assert Counter(table["angle"].to_pylist()) == {"0": 10, "15": 10, "75": 10}
    known = {image.tobytes(): number % 10 for number, image in enumerate(raw(files["some-images"]))}
    rows = zip(pixels(table, 28, 28), table["digit"].to_pylist(), table["angle"].to_pylist(), strict=True)
    upright = {image.tobytes(): digit for image, digit, angle in rows if angle == "0"}
    assert len(upright) == 10 and upright.items() <= known.items()


def test_dominoes_have_the_label_of_the_lower_half_and_each_pair_of_classes_equally_often(tmp_path):
    files = digits(tmp_path, 400, "up", side=4) | digits(tmp_path, 300, "down", side=4)
    upper = {"pair": ["up-images", "up-labels"], "classes": {"zero": 0, "one": 1}}
    lower = {"pair": ["down-images", "down-labels"], "classes": {"dress": 3, "coat": 4}}
    table = dominoes(files, upper=upper, lower=lower, rows=60, seed="s")
    pairs = Counter(zip(table["label"].to_pylist(), table["above"].to_pylist(), strict=True))
    assert pairs == {(label, above): 15 for label in (0, 1) for above in ("zero", "one")}
    halves = pixels(table, 2, 4, 4)
    for half, name, field, classes in ((0, "up", "above", {"zero": 0, "one": 1}), (1, "down", "label", {0: 3, 1: 4})):
        number = {image.tobytes(): position for position, image in enumerate(raw(files[f"{name}-images"], 4))}
        used = [number[image.tobytes()] for image in halves[:, half]]
        assert len(set(used)) == 60, "no picture twice"
        assert [position % 10 for position in used] == [classes[value] for value in table[field].to_pylist()]


@pytest.mark.parametrize(
    "name", ["colored_mnist_irm", "colored_mnist", "colored_mnist_even", "rotated_mnist", "dominoes"]
)
def test_a_derived_source_is_made_of_the_files_that_mnist_pins(name):
    def pins(source: str) -> set[tuple[str, int]]:
        files = [pin for item in find_source(source).definition.distributions for pin in item.files]
        return {(pin.sha256, pin.bytes) for pin in files}

    assert pins(name)
    assert pins(name) <= pins("mnist") | pins("fashion_mnist")


def test_each_digit_has_its_writer_and_series(tmp_path):
    known = np.array([[5, 0, 7, 0, 0, 0, 0, 0], [1, 4, 2000, 0, 0, 0, 0, 0], [2, 0, 7, 0, 0, 0, 0, 0]])
    (tmp_path / "images").write_bytes(idx((np.arange(3 * 784).reshape(3, 28, 28) % 256).astype(np.uint8)))
    (tmp_path / "labels").write_bytes(idx(known[:, 0].astype(np.uint8)))
    extended = bytes([0, 0, 12, 2]) + np.array([3, 8], ">u4").tobytes() + known.astype(">i4").tobytes()
    (tmp_path / "extended.gz").write_bytes(gzip.compress(extended))
    files = {name: tmp_path / name for name in ("images", "labels", "extended.gz")}
    result = qmnist(files, images="images", labels="labels", extended="extended.gz")
    assert result["series"].to_pylist() == ["0", "4", "0"]
    assert result["writer"].to_pylist() == ["7", "2000", "7"]
    assert result["image"][1].as_py()[:3] == [16, 17, 18]


def symbol(name: str) -> bytes:
    return struct.pack(">iii", 1, 9, len(name)) + name.encode()


def saved(name: str, item: bytes) -> bytes:
    """A file of R with one object."""
    head = b"RDX2\nX\n" + struct.pack(">iii", 2, 0x30000, 0x20300)
    return gzip.compress(head + struct.pack(">i", 2 | 0x400) + symbol(name) + item + struct.pack(">i", 254))


def matrix(values: np.ndarray) -> bytes:
    """A matrix as R serialises it: its numbers column by column, then the attribute `dim`."""
    reals = struct.pack(">ii", 14 | 0x200, values.size) + values.T.astype(">f8").tobytes()
    dim = struct.pack(">ii", 13, 2) + np.array(values.shape, ">i4").tobytes()
    return reals + struct.pack(">i", 2 | 0x400) + symbol("dim") + dim + struct.pack(">i", 254)


def test_every_digit_has_32_pixels_a_side_and_three_channels_without_interpolation(tmp_path):
    grey, colours = (
        np.arange(784, dtype=np.uint8).reshape(1, 28, 28),
        np.arange(3072, dtype=np.uint8).reshape(32, 32, 3),
    )
    numbers = np.concatenate([[[7.0]], np.linspace(-1, 1, 256)[None]], axis=1)
    (tmp_path / "images").write_bytes(idx(grey))
    (tmp_path / "labels").write_bytes(idx(np.array([5], np.uint8)))
    (tmp_path / "zip.RData").write_bytes(saved("zip.train", matrix(numbers)))
    Image.fromarray(colours).save(out := io.BytesIO(), "PNG")
    tree = open_archive(folder(tmp_path / "m", {"train/0.png": out.getvalue(), "labels.txt": b"0.png 3\n"}))
    files = {name: tmp_path / name for name in ("images", "labels", "zip.RData")} | {"m": tree}
    options = {"mnist": {"train": ["images", "labels"]}, "usps": {"train": ["zip.RData", "zip.train"]}}
    options |= {"mnist_m": "m", "mnist_m_parts": {"train": ["train", "labels.txt"]}}
    table = pa.concat_tables(digit_domains(files, **options))
    assert table["domain"].to_pylist() == ["mnist", "usps", "mnist_m"]
    assert table["digit"].to_pylist() == [5, 7, 3]
    mnist, usps, mnist_m = pixels(table, 32, 32, 3)
    np.testing.assert_array_equal(mnist[2:30, 2:30, 1], grey[0])
    assert not mnist[[0, 1, 30, 31]].any()
    np.testing.assert_array_equal(mnist_m, colours)
    small = np.rint((numbers[0, 1:] + 1) * 127.5).reshape(16, 16)
    np.testing.assert_array_equal(usps[:, :, 2], np.kron(small, np.ones((2, 2))))


def test_a_file_of_r_that_holds_a_function_or_is_cut_off_is_refused(tmp_path):
    whole = gzip.decompress(saved("x", matrix(np.ones((2, 30)))))
    for content in (saved("f", struct.pack(">i", 3)), gzip.compress(whole[:200]), whole[:30]):
        (tmp_path / "bad.RData").write_bytes(content)
        with pytest.raises(ValueError, match="R object|cut off|buffer"):
            read_rdata("bad.RData", tmp_path / "bad.RData")


RECORDS = np.random.default_rng(5).integers(0, 256, (80, 1 + 3072), dtype=np.uint8)
RECORDS[:, 0] = np.arange(80) % 10
TRUE = RECORDS[:60, 0].astype(np.int64)
HUMAN = np.where(np.arange(60) % 3 == 0, (TRUE + 1) % 10, TRUE)
OPTIONS = {
    "archive": "images.tar.gz",
    "labels": ["object"],
    "train": ["a.bin", "b.bin"],
    "test": ["t.bin"],
    "true": "object",
    "human": "human.pt",
    "given": {"worst": "worse_label"},
    "workers": "workers.csv",
}


@pytest.fixture
def own_copy(tmp_path):
    """A CIFAR of 80 images in the published binary form, its human labels, and who gave them."""
    rows = {"a.bin": RECORDS[:30], "b.bin": RECORDS[30:60], "t.bin": RECORDS[60:]}
    (tmp_path / "images.tar.gz").write_bytes(tar({name: part.tobytes() for name, part in rows.items()}))
    torch.save({"clean_label": TRUE, "worse_label": HUMAN}, tmp_path / "human.pt")
    lines = [f"{start}--{start + 4},{start // 5 % 6},40" for start in range(0, 60, 5)]
    (tmp_path / "workers.csv").write_text("\n".join(["Image-batch,Worker-id,Work-time-in-seconds", *lines]) + "\n")
    return {path.name: path for path in tmp_path.iterdir()}


def test_images_true_labels_and_human_labels_stand_side_by_side(own_copy):
    table = cifar.read(own_copy, **OPTIONS)
    assert np.array_equal(pixels(table, 3072), RECORDS[:, 1:])
    assert np.array_equal(table["object"].to_numpy(), RECORDS[:, 0])
    assert table["worst"].to_pylist() == [*HUMAN.tolist(), *[-1] * 20]
    assert table["published"].to_pylist() == ["train"] * 60 + ["test"] * 20
    assert table["worker"].to_pylist()[:12] == ["0"] * 5 + ["1"] * 5 + ["2"] * 2
    with pytest.raises(BadData, match="no array of 60 whole numbers named worst_label"):
        cifar.read(own_copy, **OPTIONS | {"given": {"worst": "worst_label"}})
    torch.save({"clean_label": TRUE[::-1].copy(), "worse_label": HUMAN}, own_copy["human.pt"])
    with pytest.raises(
        BadData, match=r"human\.pt is in another order than images\.tar\.gz: 60 of 60 true labels differ"
    ):
        cifar.read(own_copy, **OPTIONS)


def test_a_pickle_that_would_run_code_is_only_read(tmp_path):
    class Touches:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    path = tmp_path / "human.pt"
    torch.save({"clean_label": Touches()}, path)
    with pytest.raises(BadData, match="no array of 60 whole numbers named clean_label"):
        cifar.read_pickled_integers(path, ["clean_label"], 60)
    assert not (tmp_path / "ran").exists()
    torch.load(path, weights_only=False)
    assert (tmp_path / "ran").exists(), "unpickling it would have run it"


def test_the_kth_picture_of_a_class_is_the_kth_of_that_class_in_the_published_order(tmp_path):
    """Two pictures of cats and one of a dog to train on, two cats to test on."""
    truth, tested = np.arange(50_000) % 10, np.arange(10_000) * 7 % 10
    second = int(np.flatnonzero(tested == 3)[1])
    torch.save(
        {"clean_label": truth, "worse_label": np.where(np.arange(50_000) == 13, 5, truth)}, tmp_path / "human.pt"
    )
    np.save(tmp_path / "truth.npy", tested.astype(np.uint16))
    counts = 40 * np.eye(10, dtype=np.int64)[tested]
    counts[second] = [0, 0, 0, 10, 0, 30, 0, 0, 0, 0]
    np.save(tmp_path / "counts.npy", counts)
    (tmp_path / "said.json").write_text(json.dumps([{"id": second, "mturk": {"given": 1, "guessed": 4}}]))
    names = ["train/cat/0000.jpg", "train/cat/0001.jpg", "train/dog/0000.jpg", "test/cat/0000.jpg", "test/cat/0001.jpg"]
    tree = folder(tmp_path / "tree", {name: picture(at) for at, name in enumerate(names)} | {"README.md": b"x"})
    files = {name: tmp_path / name for name in ("human.pt", "truth.npy", "counts.npy", "said.json")}
    options = {"pictures": "tree", "human": "human.pt", "given": {"worst": "worse_label"}, "test": "truth.npy"}
    tables = cifar.pictures(files | {"tree": open_archive(tree)}, **options, crowd="counts.npy", errors="said.json")
    rows = {(row["published"], row["object"], row["number"]): row for row in pa.concat_tables(tables).to_pylist()}
    assert sorted(rows) == [("test", 3, 9), ("test", 3, 19), ("train", 3, 3), ("train", 3, 13), ("train", 5, 5)]
    assert [rows[key]["worst"] for key in (("train", 3, 13), ("train", 3, 3), ("test", 3, 9))] == [5, 3, -1]
    assert [rows["test", 3, number]["disagreement"] for number in (9, 19)] == [0.0, 0.75]
    assert [rows["test", 3, number]["disputed"] for number in (9, 19)] == [False, True]
    assert rows["train", 3, 13]["image"] == picture(1)


def test_readers_stand_end_to_end_with_a_constant_each(tmp_path):
    schema = Schema((Field("text", "string", "input"), Field("origin", "string", "meta")))
    (tmp_path / "a.csv").write_text("word\nx\ny\n")
    (tmp_path / "b.csv").write_text("word\nz\n")
    files = {name: tmp_path / name for name in ("a.csv", "b.csv")}
    reader = {"reader": "table", "options": {"columns": {"text": "word"}}}
    of = [reader | {"files": [name], "constants": {"origin": name}} for name in ("b.csv", "a.csv")]
    result = pa.concat_tables(together.read(files, of=of, schema=schema))
    assert result.to_pydict() == {"text": ["z", "x", "y"], "origin": ["b.csv", "a.csv", "a.csv"]}
    for change, error, complaint in (
        ({"files": ["c.csv"]}, UnknownName, "c.csv"),
        ({"constant": {}}, BadDefinition, "constant: an entry has reader, files, options and constants"),
        ({"constants": {"text": "x"}}, BadDefinition, "'text' is both read and a constant"),
    ):
        with pytest.raises(error, match=complaint):
            list(together.read(files, of=[reader | change], schema=schema))
