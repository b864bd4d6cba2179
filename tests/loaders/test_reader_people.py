"""Pictures joined with what people said of them: CIFAR-10's annotators, MNIST's writers; and readers end to end."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pyarrow as pa
import pytest
import torch
from encoded_files import folder, picture
from farshift.core.errors import BadData, BadDefinition, UnknownName
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.readers import together
from farshift.loaders.readers.cifar import cifar10_pictures
from farshift.loaders.readers.digits import qmnist
from farshift.splits.schema import Field, Schema

TRUTH = np.arange(50_000) % 10
TESTED = np.arange(10_000) * 7 % 10
OPTIONS = {
    "pictures": "tree",
    "human": "human.pt",
    "given": {"worst": "worse_label"},
    "test": "truth.npy",
    "crowd": "counts.npy",
    "errors": "said.json",
}


@pytest.fixture
def cifar(tmp_path):
    """Two pictures of cats and one of a dog to train on, two cats to test on."""
    worse = np.where(np.arange(50_000) == 13, 5, TRUTH)
    torch.save({"clean_label": TRUTH, "worse_label": worse}, tmp_path / "human.pt")
    np.save(tmp_path / "truth.npy", TESTED.astype(np.uint16))
    counts = np.zeros((10_000, 10), np.int64)
    counts[np.arange(10_000), TESTED] = 40
    counts[np.flatnonzero(TESTED == 3)[1]] = [0, 0, 0, 10, 0, 30, 0, 0, 0, 0]
    np.save(tmp_path / "counts.npy", counts)
    output = [{"id": int(np.flatnonzero(TESTED == 3)[1]), "mturk": {"given": 1, "guessed": 4}}]
    (tmp_path / "said.json").write_text(json.dumps(output))
    names = ["train/cat/0000.jpg", "train/cat/0001.jpg", "train/dog/0000.jpg", "test/cat/0000.jpg", "test/cat/0001.jpg"]
    tree = folder(
        tmp_path / "tree", {name: picture(position) for position, name in enumerate(names)} | {"README.md": b"x"}
    )
    files = {name: tmp_path / name for name in ("human.pt", "truth.npy", "counts.npy", "said.json")}
    return files | {"tree": open_archive(tree)}, tmp_path


def rows(files, **change):
    table = pa.concat_tables(cifar10_pictures(files, **OPTIONS | change))
    return {(row["published"], row["object"], row["number"]): row for row in table.to_pylist()}


def test_the_kth_picture_of_a_class_is_the_kth_of_that_class_in_the_published_order(cifar):
    files, _ = cifar
    result = rows(files)
    assert sorted(result) == [("test", 3, 9), ("test", 3, 19), ("train", 3, 3), ("train", 3, 13), ("train", 5, 5)]
    assert result["train", 3, 13]["worst"] == 5
    assert result["train", 3, 3]["worst"] == 3
    assert result["test", 3, 9]["worst"] == -1
    assert [result["test", 3, number]["disagreement"] for number in (9, 19)] == [0.0, 0.75]
    assert [result["test", 3, number]["disputed"] for number in (9, 19)] == [False, True]
    assert result["train", 3, 13]["image"] == picture(1)


def test_a_picture_that_is_cut_off_or_of_no_class_is_named(cifar):
    files, position = cifar
    (position / "tree/train/cat/0001.jpg").write_bytes(picture(1)[:-10])
    with pytest.raises(BadData, match=r"train/cat/0001\.jpg is not a complete JPEG"):
        rows(files)
    (position / "tree/train/cat/0001.jpg").unlink()
    (position / "tree/train/cow").mkdir()
    (position / "tree/train/cow/0000.jpg").write_bytes(picture(1))
    with pytest.raises(BadData, match=r"train/cow/0000\.jpg is not part/class/number\.jpg"):
        rows(files | {"tree": open_archive(position / "tree")})


def idx(values: np.ndarray, code: int) -> bytes:
    head = bytes([0, 0, code, values.ndim]) + np.array(values.shape, ">u4").tobytes()
    return head + values.astype(">i4" if code == 12 else "u1").tobytes()


@pytest.fixture
def digits(tmp_path):
    """Four digits by two writers."""
    known = np.array([[5, 0, 7, 0, 0, 0, 0, 0], [1, 4, 2000, 0, 0, 0, 0, 0], [2, 0, 7, 0, 0, 0, 0, 0]] * 2)[:4]
    (tmp_path / "images").write_bytes(idx(np.arange(4 * 28 * 28).reshape(4, 28, 28) % 256, 8))
    (tmp_path / "labels").write_bytes(idx(known[:, 0], 8))
    (tmp_path / "extended.gz").write_bytes(gzip.compress(idx(known, 12)))
    return {name: tmp_path / name for name in ("images", "labels", "extended.gz")}, known


def test_each_digit_has_its_writer_and_series(digits):
    files, _ = digits
    result = qmnist(files, images="images", labels="labels", extended="extended.gz")
    assert result["series"].to_pylist() == ["0", "4", "0", "0"]
    assert result["writer"].to_pylist() == ["7", "2000", "7", "7"]
    assert result["image"][1].as_py()[:3] == [16, 17, 18]


def test_labels_in_another_order_and_cut_off_ones_are_refused(digits, tmp_path):
    files, known = digits
    (tmp_path / "extended.gz").write_bytes(gzip.compress(idx(known[::-1], 12)))
    with pytest.raises(BadData, match="is in another order than labels: 2 of 4 digits differ"):
        qmnist(files, images="images", labels="labels", extended="extended.gz")
    (tmp_path / "extended.gz").write_bytes(gzip.compress(idx(known, 12)[:-4]))
    with pytest.raises(BadData, match="its header says 4x8 values, but it holds 124 bytes"):
        qmnist(files, images="images", labels="labels", extended="extended.gz")


ORIGINS = Schema((Field("text", "string", "input"), Field("origin", "string", "meta")))


def test_readers_stand_end_to_end_with_a_constant_each(tmp_path):
    (tmp_path / "a.csv").write_text("word\nx\ny\n")
    (tmp_path / "b.csv").write_text("word\nz\n")
    files = {name: tmp_path / name for name in ("a.csv", "b.csv")}
    reader = {"reader": "table", "options": {"columns": {"text": "word"}}}
    of = [reader | {"files": [name], "constants": {"origin": name}} for name in ("b.csv", "a.csv")]
    result = pa.concat_tables(together.read(files, of=of, schema=ORIGINS))
    assert result.to_pydict() == {"text": ["z", "x", "y"], "origin": ["b.csv", "a.csv", "a.csv"]}
    with pytest.raises(UnknownName, match="c.csv"):
        list(together.read(files, of=[reader | {"files": ["c.csv"]}], schema=ORIGINS))
    with pytest.raises(BadDefinition, match="constant: an entry has reader, files, options and constants"):
        list(together.read(files, of=[reader | {"constant": {}}], schema=ORIGINS))
    with pytest.raises(BadDefinition, match="'text' is both read and a constant"):
        list(together.read(files, of=[reader | {"constants": {"text": "x"}}], schema=ORIGINS))
