"""Indexes, shards and Parquet files made to do harm: each is one error of one line, in no more memory than is due."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exported import edit_index, export
from farshift import FarshiftError, stream
from farshift.core.errors import BadData, Unavailable
from farshift.loaders.stream import shards
from farshift.loaders.stream.files import FolderFile, HttpFile
from farshift.loaders.stream.parquet import ParquetFiles
from farshift.splits.schema import Field, Schema
from servers import serve_folder

NAME = "modadd97/xi35"
PIXELS = Field("x", "uint8[2,2]", "input")
NUMBER = Field("i", "int64", "input")
TEXT = Field("t", "string", "label")


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> Path:
    return export(NAME, "train", tmp_path_factory.mktemp("exports"))


def complaint(place: Path) -> str:
    """What is said of a place that cannot be streamed: one line."""
    with pytest.raises(BadData) as refused:
        list(stream(NAME, "train", place).batches(100))
    line = str(refused.value)
    assert "\n" not in line
    return line


def said(exports: Path, folder: Path, change) -> Path:
    """The export with another manifest.json."""
    shutil.copytree(exports / "shards", folder)
    record = json.loads((folder / "manifest.json").read_text())
    changed = change(record)
    (folder / "manifest.json").write_text(changed if isinstance(changed, str) else json.dumps(record))
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda said: "[" * 200_000, "it is nested over 100 deep"),
        (lambda said: "[]", "it is not an object"),
        (lambda said: said.update(format="a\nb"), r"has format 'a\nb'"),
        (lambda said: said.update(shards=[]), "manifest.json is damaged: shards: "),
        (lambda said: said.pop("index") and None, "manifest.json is damaged: index: Field required"),
        (lambda said: said["shards"][0].update(bytes=float("inf")), "shards.0.bytes: "),
        (lambda said: said["shards"][0].update(bytes=-1), "shards.0.bytes: Input should be greater than or equal to 0"),
        (lambda said: said["shards"][0].update(file="../a.tar"), "not a file name"),
        (lambda said: said["shards"][0].update(file="a\nb.tar"), "not a file name"),
        (lambda said: said["index"].update(sha256="../../../etc/passwd"), "index.sha256: "),
    ],
)
def test_a_manifest_that_lies_is_one_error(exports, tmp_path, change, message):
    assert message in complaint(said(exports, tmp_path / "said", change))


def column(name: str, values) -> object:
    return lambda table: table.set_column(table.column_names.index(name), name, values(len(table)))


def other(name: str, values) -> object:
    return lambda table: table.set_column(table.column_names.index(name), name, [values(table[name].to_numpy())])


def beyond(table: pa.Table) -> pa.Table:
    """A row whose offset and length add up to a negative number in 64 bits."""
    for name in ("offset", "length", "json.offset", "json.length"):
        values = table[name].to_numpy().copy()
        values[0] = 1 << 62
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (column("occurrence", lambda rows: pa.array(np.full(rows, -1, np.int32))), "occurrence has negative numbers"),
        (column("offset", lambda rows: pa.array(["x"] * rows)), "column offset is not int64"),
        (column("offset", lambda rows: pa.nulls(rows, pa.int64())), "column offset is not int64"),
        (column("row_id", lambda rows: pa.array(["x"] * rows)), "column row_id is not uint64"),
        (column("label", lambda rows: pa.array([{"a": 1}] * rows)), "column label is not int64"),
        (column("true_label", lambda rows: pa.array(["x"] * rows)), "column true_label is not int64"),
        (lambda table: table.drop_columns(["check"]), "lacks the columns check"),
        (beyond, "points outside the shards"),
        (lambda table: pa.concat_tables([table] * 3), "more than the source"),
        (lambda table: table.slice(1), "does not have the published rows"),
        (
            other("source_check", lambda checks: np.nan_to_num(checks, nan=1).astype("u8")),
            "does not have the published",
        ),
        (other("row_id", lambda ids: ids ^ np.uint64(1)), "does not have the published rows of modadd97/xi35@1, train"),
        (other("shard", lambda shards: shards + 1), "points outside the shards"),
        (other("offset", lambda offsets: offsets - 1024), "points outside the shards"),
        (other("json.length", lambda lengths: lengths + 5000), "points outside the shards"),
    ],
)
def test_an_index_of_wrong_types_sizes_or_rows_is_one_error(exports, tmp_path, change, message):
    assert message in complaint(edit_index(exports / "shards", tmp_path / "index", change))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([[1, 2, 3], [4, 5, 6, 7, 8]], pa.list_(pa.uint8())),
        ([[1, 2, 3, None], [1, 2, 3, 4]], pa.list_(pa.uint8())),
        ([[[1, 2], [3, 4]], [[1], [2, 3, 4]]], pa.list_(pa.list_(pa.uint8()))),
        ([{"a": 1}, {"a": 2}], pa.struct({"a": pa.int64()})),
    ],
)
def test_lists_that_only_add_up_to_tensors_are_refused(tmp_path, values, kind):
    pq.write_table(pa.table({"x": pa.array(values, kind)}), tmp_path / "a.parquet")
    files = ParquetFiles.open([FolderFile.open(tmp_path / "a.parquet")], Schema((PIXELS,)))
    with pytest.raises(BadData, match="column 'x' has"):
        list(files.scan(1 << 20))


def test_a_text_that_repeats_a_million_times_is_decoded_some_rows_at_a_time(tmp_path):
    rows, text = 100_000, "x" * 5_000  # half a gigabyte, in some kilobytes
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [text])
    pq.write_table(pa.table({"t": column}), tmp_path / "a.parquet", store_schema=False)
    texts = Schema((Field("t", "string", "input"),))
    files = ParquetFiles.open([FolderFile.open(tmp_path / "a.parquet")], texts)
    sizes = [table.nbytes for _, table in files.scan(1 << 20)]
    assert sum(sizes) > rows * len(text)
    assert max(sizes) < 50_000_000


def npy(header: str, data: bytes = b"abcd") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1") + data


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000,)}\n",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-1,)}\n",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2)}\n",
        "{'descr': (), 'fortran_order': False, 'shape': (2, 2)}\n",
        "{'descr': '|u1'," + " " * 20_000 + "}\n",
        "-" * 9_000 + "1\n",
        "(" * 9_000 + "\n",
    ],
    ids=["a terabyte", "negative", "objects", "no type", "long", "nested", "open"],
)
def test_an_npy_header_is_read_and_never_believed(header):
    with pytest.raises(BadData, match="here: the sample is damaged: field 'x' is") as error:
        shards.decode_samples({"x.npy": [npy(header)]}, [PIXELS], lambda row: "here")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("field", "content"), [(TEXT, b'{"t":"\\ud800"}'), (TEXT, b"[" * 100_000), (NUMBER, b"3")])
def test_json_that_is_no_row_is_one_error(field, content):
    with pytest.raises(BadData, match="here: the sample is damaged: "):
        shards.decode_samples({"json": [content]}, [field], lambda row: "here")


@pytest.mark.parametrize("bounds", [(0, 1 << 50), (-5, 5), (8, 5)])
def test_no_bytes_are_asked_for_that_a_file_does_not_have(exports, bounds):
    with pytest.raises(BadData, match="are needed: it is truncated"):
        FolderFile.open(exports / "train.parquet").read(*bounds, Event())


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://a..b/"])
def test_a_redirect_out_of_the_web_is_refused(tmp_path, target):
    (tmp_path / "a.tar").write_bytes(b"content")
    with serve_folder(tmp_path) as site:
        address, site.url, site.moved = site.url, "", {"/a.tar": target}
        with pytest.raises(Unavailable, match="cannot be reached") as error:
            HttpFile.open(f"{address}/a.tar")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("source", ["a\0b", "a\nb.tar", "~nobody-of-that-name/a.tar", "/data/**.tar"])
def test_a_source_that_is_no_path_is_one_error(source):
    with pytest.raises(FarshiftError) as error:
        stream(NAME, "train", source)
    assert "\n" not in str(error.value)
