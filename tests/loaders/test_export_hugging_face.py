"""A part as a `datasets.Dataset`: the same values and types, in the same memory."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest
from farshift import load
from farshift.core.errors import MissingExtra
from farshift.loaders.export.hugging_face import to_hf
from farshift.loaders.part import Part
from farshift.splits.schema import Field, Schema

KINDS = ("uint8[4]", "uint8[2,3]", "float32[2,3,2]", "int64[2,1,3,2]", "string", "bytes", "float64", "uint64", "bool")


@pytest.fixture(autouse=True)
def _datasets():
    pytest.importorskip("datasets")


def made(rows: int = 9) -> Part:
    schema = Schema(tuple(Field(f"f{position}", kind, "input") for position, kind in enumerate(KINDS)))
    draw = np.random.default_rng(0)
    columns = {}
    for field in schema.fields:
        size = int(np.prod(field.shape))
        if field.shape:
            values = pa.array(draw.integers(0, 200, rows * size).astype(field.item))
            columns[field.name] = pa.FixedSizeListArray.from_arrays(values, size)
        elif field.item in ("string", "bytes"):
            texts = [f"{position} ü" for position in range(rows)]
            columns[field.name] = pa.array(texts if field.item == "string" else [text.encode() for text in texts])
        else:
            columns[field.name] = pa.array(draw.integers(0, 2, rows).astype(field.item))
    table = pa.table(columns).append_column("row_id", [np.arange(rows, dtype=np.uint64)])
    return Part("made/split@1", "0" * 64, "train", schema, "f4", table, np.arange(rows), {})


def test_every_value_and_type_is_kept():
    part = made()
    data = to_hf(part)
    assert data.column_names == list(part.columns)
    assert len(data) == len(part)
    expected = part.numpy()
    for field in part.schema.fields:
        column = data[:][field.name]
        assert np.array_equal(np.array(column, expected[field.name].dtype), expected[field.name]), field
    kinds = {field.name: str(data.features[field.name]) for field in part.schema.fields}
    assert kinds["f1"].startswith("Array2D(shape=(2, 3), dtype='uint8'")
    assert kinds["f2"].startswith("Array3D(shape=(2, 3, 2), dtype='float32'")
    assert [data.features[name].dtype for name in ("f4", "f5", "f6", "f7", "f8")] == ["string", "binary", "float64", "uint64", "bool"]  # fmt: skip


def test_elements_of_tensors_are_not_copied(monkeypatch):
    part = made()
    table = part.arrow()
    monkeypatch.setattr(type(part), "arrow", lambda *_: table)
    stored = to_hf(part).data
    for name, layers in (("f0", 1), ("f1", 2), ("f2", 3)):
        column = stored.column(name).chunk(0)
        values = column.storage if isinstance(column, pa.ExtensionArray) else column
        for _ in range(layers):
            values = values.values
        assert values.buffers()[1].address == table[name].chunk(0).values.buffers()[1].address


def test_the_fingerprint_names_the_rows():
    part = load("scan/addprim_jump")
    assert to_hf(part)._fingerprint == to_hf(load("scan/addprim_jump"))._fingerprint
    first, last = part.select(np.arange(10)), part.select(np.arange(10, 20))
    assert len({to_hf(some)._fingerprint for some in (part, first, last)}) == 3


def test_an_empty_selection_is_an_empty_data_set():
    assert len(to_hf(made().select(np.arange(0)))) == 0


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'farshift\[stream\]'"):
        to_hf(made())
