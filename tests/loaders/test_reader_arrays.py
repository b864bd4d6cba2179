"""Arrays in NumPy, MATLAB and HDF5 files: images and labels side by side, nothing unpickled, nothing outside a file."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from encoded_files import zipped
from farshift.core.errors import BadData, BadDefinition, MissingExtra, Unavailable
from farshift.loaders.readers import _hdf5, arrays
from farshift.loaders.readers.arrays import read_matlab
from farshift.splits.schema import Field, Schema
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from hypothesis.extra.numpy import arrays as number_arrays
from scipy.io import loadmat, savemat
from scipy.sparse import csc_array

h5py = pytest.importorskip("h5py")

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
    with pytest.raises(BadData, match="10 rows cannot be divided into 3 equal blocks of 'level'"):
        rows(locked, fields={"image": "x.npy"}, blocks={"level": [1, 2, 3]})
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


def matlab(path: Path, **values: np.ndarray | str) -> Path:
    """A file as MATLAB 7.3 writes it: a head of 512 bytes, axes in reverse, texts as 16-bit letters."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in values.items():
            text = isinstance(value, str)
            array = np.array([[ord(letter) for letter in value]], np.uint16) if text else np.atleast_2d(value)
            file.create_dataset(name, data=array.T).attrs["MATLAB_class"] = np.bytes_("char" if text else "double")
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Jan 01 00:00:00 2024 HDF5 schema 1.00 ."
    with path.open("r+b") as file:
        file.write(head.ljust(124) + b"\x00\x02IM")
    return path


def test_images_and_labels_of_two_files_as_patchcamelyon_has_them(tmp_path):
    """x (rows, 96, 96, 3) compressed by chunks, and y (rows, 1, 1, 1), each in a file of its own."""
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=IMAGES, chunks=(3, 4, 4, 3), compression="gzip")
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file["y"] = np.arange(10, dtype=np.uint8).reshape(10, 1, 1, 1) % 2
    schema = Schema((SCHEMA["image"], Field("label", "uint8[1]", "label")))
    files = {name: tmp_path / name for name in ("x.h5", "y.h5")}
    result = rows(files, schema, fields={"image": "x.h5", "label": "y.h5:y"})
    assert np.array_equal(images(result), IMAGES)
    assert [row["label"] for row in result] == [[0], [1]] * 5


def test_arrays_in_groups_of_a_member_of_an_archive(tmp_path):
    with h5py.File(tmp_path / "a.hdf5", "w") as file:
        file["rural/image"], file["rural/country"] = IMAGES, [f"land {number}" for number in range(10)]
        file["urban/image"] = IMAGES[::-1]
        file["flag"] = np.array([True, False] * 5)
    archive = zipped(tmp_path / "all.zip", {"set/a.hdf5": (tmp_path / "a.hdf5").read_bytes()})
    schema = Schema((SCHEMA["image"], Field("country", "string", "meta"), Field("flag", "bool", "label")))
    fields = {"image": "set/a.hdf5:rural/image", "country": "set/a.hdf5:rural/country", "flag": "set/a.hdf5:flag"}
    result = rows({"all.zip": archive}, schema, fields=fields)
    assert np.array_equal(images(result), IMAGES)
    assert [row["country"] for row in result] == [f"land {number}" for number in range(10)]
    assert [row["flag"] for row in result] == [True, False] * 5


def test_matlab_7_3_is_read_as_older_versions_are(tmp_path):
    path = matlab(tmp_path / "a.mat", X=IMAGES.transpose(1, 2, 3, 0), y=np.arange(10)[:, None], name="sketch")
    result = rows({"a.mat": path}, fields={"image": "a.mat:X", "label": "a.mat:y"}, row_axis={"image": 3})
    assert np.array_equal(images(result), IMAGES)
    assert [row["label"] for row in result] == list(range(10))
    assert _hdf5.Hdf5Arrays(path, matlab=True)["name"].tolist() == ["sketch"]


@given(number_arrays(np.float64, array_shapes(min_dims=2, max_dims=3, max_side=4), elements=st.floats(-9, 9)))
def test_axes_of_matlab_come_back_in_their_order(values):
    with tempfile.TemporaryDirectory() as folder:
        result = _hdf5.Hdf5Arrays(matlab(Path(folder, "a.mat"), v=values), matlab=True)
        assert np.array_equal(result["v"], values)


def test_large_arrays_are_mapped_and_the_same(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = IMAGES
    monkeypatch.setattr(_hdf5, "_LARGE", 16)
    monkeypatch.setattr(_hdf5, "_PIECE", 100)
    result = _hdf5.Hdf5Arrays(tmp_path / "a.h5")["x"]
    assert isinstance(result, np.memmap) and np.array_equal(result, IMAGES)


def test_nothing_outside_the_file_is_read(tmp_path):
    (tmp_path / "secret.bin").write_bytes(bytes(range(64)))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(8)
    layout = h5py.VirtualLayout((8,), "i8")
    layout[:] = h5py.VirtualSource(tmp_path / "other.h5", "x", (8,))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["link"] = h5py.ExternalLink("other.h5", "x")
        file["soft"] = h5py.SoftLink("/stored")
        file.create_dataset("stored", (64,), "u1", external=[(str(tmp_path / "secret.bin"), 0, 64)])
        file.create_virtual_dataset("virtual", layout)
        file["own"] = np.arange(8)
        file["again"] = file["too"] = file["/"]
    locked = {"a.h5": tmp_path / "a.h5"}
    schema = Schema((Field("x", "int64", "input"),))
    assert [row["x"] for row in rows(locked, schema, fields={"x": "a.h5:own"})] == list(range(8))
    for name, output in (
        ("link", "no array 'link'"),
        ("soft", "no array 'soft'"),
        ("stored", "'stored' is stored in other files, which are not read"),
        ("virtual", "'virtual' is stored in other files"),
    ):
        with pytest.raises(BadData, match=output):
            rows(locked, schema, fields={"x": f"a.h5:{name}"})


def test_what_is_no_array_is_named(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["table"] = np.zeros(3, [("a", "i4"), ("b", "f4")])
        file["pointer"] = file["table"].ref
    path = matlab(tmp_path / "m.mat", v=np.zeros((2, 2)))
    with h5py.File(path, "r+") as file:
        file["v"].attrs["MATLAB_class"] = np.bytes_("cell")
    (tmp_path / "cut.h5").write_bytes((tmp_path / "a.h5").read_bytes()[:700])
    (tmp_path / "cut.mat").write_bytes(b"MATLAB 7.3 MAT-file" + b" " * 200)
    for name, output in (
        ("a.h5:table", r"a.h5: not a readable .h5 file: '/table' holds \[\('a', '<i4'\)"),
        ("a.h5:pointer", "'/pointer' holds object"),
        ("m.mat:v", "m.mat: not a readable .mat file: '/v' is a cell"),
        ("cut.h5:x", "cut.h5: not a readable .h5 file"),
        ("cut.mat:x", "cut.mat: not a readable .mat file"),
    ):
        file = name.partition(":")[0]
        with pytest.raises(BadData, match=output):
            read({file: tmp_path / file}, fields={"x": name})


def test_without_h5py_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "a.h5").write_bytes(b"")
    for sort in (MissingExtra, Unavailable):  # out of reach, as without a network: `splits verify` goes on
        with pytest.raises(sort, match=r"farshift\[hdf5\]"):
            read({"a.h5": tmp_path / "a.h5"}, fields={"x": "a.h5:x"})
