"""Arrays in .npy, .npz and .mat files: images, labels and severities side by side, and nothing unpickled."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from encoded_files import tarred, zipped
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.readers import arrays
from farshift.loaders.readers.arrays import read_matlab
from farshift.splits.schema import Field, Schema
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from scipy.io import loadmat, savemat
from scipy.sparse import csc_array

IMAGES = np.random.default_rng(0).integers(0, 256, (10, 4, 4, 3), np.uint8)
LABELS = np.arange(10)
SCHEMA = Schema((Field("image", "uint8[4,4,3]", "input"), Field("label", "int64", "label")))


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def files(folder: Path, **arrays: np.ndarray) -> dict[str, Path]:
    for name, array in arrays.items():
        (folder / f"{name}.npy").write_bytes(npy(array))
    return {f"{name}.npy": folder / f"{name}.npy" for name in arrays}


def read(files, **options) -> pa.Table:
    return pa.concat_tables(arrays.read(files, **options))


def rows(held, schema: Schema = SCHEMA, **options) -> list[dict]:
    return schema.conform(read(held, schema=schema, **options), "here").to_pylist()


def images(found: list[dict]) -> np.ndarray:
    return np.array([row["image"] for row in found], np.uint8).reshape(-1, 4, 4, 3)


def test_images_and_labels_lie_side_by_side_in_npy_npz_and_mat(tmp_path):
    np.savez(tmp_path / "a.npz", images=IMAGES, labels=LABELS)
    savemat(tmp_path / "a.mat", {"X": IMAGES.transpose(1, 2, 3, 0), "y": LABELS[:, None] + 1})
    for locked, options in (
        (files(tmp_path, x=IMAGES, y=LABELS), {"fields": {"image": "x.npy", "label": "y.npy"}}),
        ({"a.npz": tmp_path / "a.npz"}, {"fields": {"image": "a.npz:images", "label": "a.npz:labels"}}),
        (
            {"a.mat": tmp_path / "a.mat"},
            {
                "fields": {"image": "a.mat:X", "label": "a.mat:y"},
                "row_axis": {"image": 3},
                "replace": {"label": {str(number + 1): number for number in range(10)}},
            },
        ),
    ):
        result = rows(locked, **options)
        assert np.array_equal(images(result), IMAGES)
        assert [row["label"] for row in result] == LABELS.tolist()


def test_the_corruptions_of_cifar_10_c_are_one_file_each_with_five_severities_in_order(tmp_path):
    corrupted = {kind: (IMAGES + number).astype(np.uint8) for number, kind in enumerate(("fog", "snow"))}
    content = {f"CIFAR-10-C/{kind}.npy": npy(array) for kind, array in corrupted.items()}
    locked = {"CIFAR-10-C.tar": tarred(tmp_path / "CIFAR-10-C.tar", content | {"CIFAR-10-C/labels.npy": npy(LABELS)})}
    schema = Schema((*SCHEMA.fields, Field("corruption", "string", "meta"), Field("level", "int64", "meta")))
    options = {
        "fields": {"image": "CIFAR-10-C/{corruption}.npy", "label": "CIFAR-10-C/labels.npy"},
        "blocks": {"level": [1, 2, 3, 4, 5]},
    }
    result = rows(locked, schema, **options)
    assert [row["level"] for row in result] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5] * 2
    assert [row["corruption"] for row in result] == ["fog"] * 10 + ["snow"] * 10
    assert np.array_equal(images(result), np.concatenate(list(corrupted.values())))
    assert {row["corruption"] for row in rows(locked, schema, **options, only={"corruption": ["snow"]})} == {"snow"}
    with pytest.raises(BadData, match=r"no file fits 'CIFAR-10-C/\{corruption\}\.npy' with frost"):
        rows(locked, schema, **options, only={"corruption": ["snow", "frost"]})
    with pytest.raises(BadData, match="10 rows cannot be divided into 3 equal blocks of 'level'"):
        rows(locked, schema, **options | {"blocks": {"level": [1, 2, 3]}})


def test_each_part_of_mnist_c_has_its_own_labels(tmp_path):
    content = {
        f"{kind}/{part}_{what}.npy": npy(array[: 10 if part == "train" else 4])
        for kind in ("fog", "scale")
        for part in ("train", "test")
        for what, array in (("images", IMAGES), ("labels", LABELS))
    }
    locked = {"mnist_c.zip": zipped(tmp_path / "mnist_c.zip", content)}
    schema = Schema((*SCHEMA.fields, Field("published", "string", "meta"), Field("corruption", "string", "meta")))
    paths = "{corruption}/{published:train|test}_"
    result = rows(locked, schema, fields={"image": f"{paths}images.npy", "label": f"{paths}labels.npy"})
    assert len(result) == 2 * 14
    assert [row["label"] for row in result if row["published"] == "test"] == [0, 1, 2, 3] * 2


def test_colours_come_first_where_axes_say_so_and_a_wrong_order_is_refused(tmp_path):
    locked = files(tmp_path, x=IMAGES)
    schema = Schema((Field("image", "uint8[3,4,4]", "input"),))
    result = rows(locked, schema, fields={"image": "x.npy"}, axes={"image": [2, 0, 1]})
    assert np.array_equal(np.array([row["image"] for row in result]).reshape(10, 3, 4, 4), IMAGES.transpose(0, 3, 1, 2))
    with pytest.raises(
        BadData, match=r"a row of image is 4x4x3, but uint8\[3,4,4\] is required: set the order of its axes with `axes`"
    ):
        rows(locked, schema, fields={"image": "x.npy"})
    flat = files(tmp_path, flat=IMAGES.reshape(10, -1))
    assert len(rows(flat, schema, fields={"image": "flat.npy"})) == 10


def test_tables_are_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "_PIECE", 100)
    tables = list(arrays.read(files(tmp_path, x=IMAGES), fields={"image": "x.npy"}))
    assert [table.num_rows for table in tables] == [2] * 5
    assert np.array_equal(images(pa.concat_tables(tables).to_pylist()), IMAGES)


def test_text_big_endian_and_sparse_arrays_are_read(tmp_path):
    savemat(tmp_path / "s.mat", {"m": csc_array(np.eye(3))})
    locked = files(tmp_path, t=np.array(["é", "b", "c"]), b=np.array([b"x", b"y", b"z"]), n=np.array([1, 2, 3], ">i2"))
    fields = {"t": "t.npy", "b": "b.npy", "n": "n.npy", "m": "s.mat:m"}
    result = read(locked | {"s.mat": tmp_path / "s.mat"}, fields=fields)
    assert result.to_pydict() == {"t": ["é", "b", "c"], "b": ["x", "y", "z"], "n": [1, 2, 3], "m": np.eye(3).tolist()}


class Trap:
    def __reduce__(self):
        return print, ("unpickled!",)


def test_nothing_is_unpickled(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.array([Trap()], object))
    np.savez(tmp_path / "x.npz", x=np.array([Trap()], object))
    for name in ("x.npy", "x.npz"):
        with pytest.raises(
            BadData, match=rf"^{name}: not a readable \.np[yz] file: (Object arrays cannot|Array can't)"
        ):
            read({name: tmp_path / name}, fields={"x": name})
    assert capsys.readouterr().out == ""


def test_files_that_do_not_belong_together_or_are_damaged_are_named(tmp_path):
    locked = files(tmp_path, x=IMAGES, y=LABELS[:-2])
    fields = {"image": "x.npy", "label": "y.npy"}
    with pytest.raises(BadData, match=r"y\.npy has 8 rows, but x\.npy has 10: they must be the same"):
        rows(locked, fields=fields)
    with pytest.raises(BadData, match=r"no file z\.npy: the files are x\.npy, y\.npy"):
        rows(locked, fields={"image": "z.npy"})
    (tmp_path / "x.npy").write_bytes(npy(IMAGES)[:-9])
    with pytest.raises(BadData, match=r"x\.npy: not a readable \.npy file"):
        rows(locked, fields=fields)
    np.savez(tmp_path / "a.npz", images=IMAGES, labels=LABELS)
    packed = {"a.npz": tmp_path / "a.npz"}
    with pytest.raises(BadData, match=r"a\.npz has no array 'image' \(it has images, labels\)"):
        rows(packed, fields={"image": "a.npz:image"})
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-99])
    with pytest.raises(BadData, match=r"a\.npz: not a readable \.npz file"):
        rows(packed, fields={"image": "a.npz:images"})
    (tmp_path / "m.mat").write_bytes(b"MATLAB" + b" " * 200)
    with pytest.raises(BadData, match=r"m\.mat: not a readable \.mat file"):
        rows({"m.mat": tmp_path / "m.mat"}, fields={"image": "m.mat:x"})
    (tmp_path / "x.txt").write_text("1")
    with pytest.raises(BadDefinition, match=r"x\.txt: not an array file, by its suffix"):
        rows({"x.txt": tmp_path / "x.txt"}, fields={"image": "x.txt"})


@given(
    st.sampled_from(["u1", "i1", "u2", "i2", "i4", "u4", "i8", "u8", "f4", "f8", "?"]),
    array_shapes(min_dims=2, max_dims=4, max_side=4),
    st.booleans(),
    st.integers(0, 9),
)
def test_matlab_files_are_read_as_scipy_reads_them(tmp_path_factory, kind, shape, compressed, seed):
    values = (np.random.default_rng(seed).normal(size=shape) * 3).astype(kind)
    out = io.BytesIO()
    sparse = csc_array((values.reshape(values.shape[0], -1) != 0).astype(float))
    output = {
        "x": values,
        "text": np.array(["ab", "cd"]),
        "nest": {"a": 1},
        "s": sparse,
        "cell": np.array([[1], "a"], object),
    }
    savemat(out, output, do_compression=compressed)
    expected, result = loadmat(io.BytesIO(out.getvalue())), read_matlab(out.getvalue())
    assert np.array_equal(result["x"], expected["x"])
    assert result["x"].dtype == expected["x"].dtype
    assert np.array_equal(result["s"], expected["s"].toarray())
    assert result["text"].tolist() == ["ab", "cd"]
    assert set(result) == {"x", "text", "s"}
    with pytest.raises(ValueError):
        read_matlab(out.getvalue()[:-20])
