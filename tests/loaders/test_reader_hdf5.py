"""Arrays in HDF5 files, in the layouts of PatchCamelyon, of WILDS' regions and of MATLAB 7.3; nothing outside a file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from encoded_files import zipped
from farshift.core.errors import BadData, MissingExtra, Unavailable
from farshift.loaders.readers import _hdf5
from farshift.loaders.readers import arrays as array_reader
from farshift.splits.schema import Field, Schema
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

h5py = pytest.importorskip("h5py")

IMAGES = np.random.default_rng(0).integers(0, 256, (10, 4, 4, 3), np.uint8)
SCHEMA = Schema((Field("image", "uint8[4,4,3]", "input"), Field("label", "int64", "label")))


def read(files, **options) -> pa.Table:
    return pa.concat_tables(array_reader.read(files, **options))


def rows(held, schema: Schema = SCHEMA, **options) -> list[dict]:
    return schema.conform(read(held, schema=schema, **options), "here").to_pylist()


def images(found: list[dict]) -> np.ndarray:
    return np.array([row["image"] for row in found], np.uint8).reshape(-1, 4, 4, 3)


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
    result = rows(
        {name: tmp_path / name for name in ("x.h5", "y.h5")}, schema, fields={"image": "x.h5", "label": "y.h5:y"}
    )
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


@given(arrays(np.float64, array_shapes(min_dims=2, max_dims=3, max_side=4), elements=st.floats(-9, 9)))
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
