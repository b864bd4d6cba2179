"""A Parquet file of a part: all columns with their types, and what they are of."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError, load
from farshift.loaders import export
from farshift.loaders.export import content
from farshift.loaders.export.content import write_parquet
from farshift.loaders.part import Part
from farshift.loaders.split import open_split
from farshift.splits.rows import compute_row_ids
from farshift.splits.schema import Field, Schema
from support import one_line_error


def tensors(rows: int = 20) -> Part:
    schema = Schema((Field("pixels", "uint8[2,3]", "input"), Field("digit", "int64", "label")))
    values = np.arange(rows * 6) % 251
    table = pa.table(
        {
            "pixels": pa.FixedSizeListArray.from_arrays(pa.array(values.astype("u1")), 6),
            "digit": pa.array(np.arange(rows)),
        }
    )
    table = table.append_column("row_id", [compute_row_ids(table, schema)]).sort_by("row_id")
    return Part("made/split@1", "0" * 64, "train", schema, "digit", table, np.arange(rows), {})


@pytest.mark.parametrize("name", ["scan/addprim_jump", "prefix_sums/32_to_64", "modadd97/xi35"])
def test_the_columns_come_back_with_their_types(name, tmp_path):
    part = load(name)
    back = pq.read_table(write_parquet(part, tmp_path / "part.parquet"))
    assert back.equals(part.arrow())
    assert tuple(back.column_names) == part.columns


def test_a_tensor_is_a_list_of_fixed_size_and_its_shape_is_told(tmp_path):
    part = tensors()
    back = pq.read_table(write_parquet(part, tmp_path / "part.parquet"))
    assert back.schema.field("pixels").type == pa.list_(pa.uint8(), 6)
    output = json.loads(back.schema.metadata[b"farshift"])
    shape = output["shapes"]["pixels"]
    pixels = back["pixels"].combine_chunks().flatten().to_numpy().reshape(-1, *shape)
    assert np.array_equal(pixels, part.numpy(["pixels"])["pixels"])


def test_the_file_says_what_it_is_of(tmp_path):
    split = open_split("scan/length")
    part = split.part("ood_test")
    output = json.loads(pq.read_schema(write_parquet(part, tmp_path / "part.parquet")).metadata[b"farshift"])
    assert output["split"] == "scan/length@1"
    assert output["identity"] == split.manifest.identity
    assert (output["part"], output["rows"], output["label"]) == ("ood_test", 3920, "actions")
    columns = pq.ParquetFile(tmp_path / "part.parquet").metadata.row_group(0)
    assert {columns.column(position).compression for position in range(columns.num_columns)} == {"ZSTD"}


def test_the_same_part_gives_the_same_bytes(tmp_path):
    item, other = (write_parquet(load("scan/length"), tmp_path / name).read_bytes() for name in ("one", "other"))
    assert item == other


def test_a_part_larger_than_memory_is_written_a_block_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "_BLOCK_ROWS", 7)
    file = pq.ParquetFile(write_parquet(tensors(), tmp_path / "part.parquet"))
    assert [file.metadata.row_group(position).num_rows for position in range(file.num_row_groups)] == [7, 7, 6]
    assert file.read().equals(tensors().arrow())


def test_a_write_that_breaks_off_leaves_nothing(tmp_path, monkeypatch):
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("farshift.loaders.export.content.os.fsync", full)
    with pytest.raises(FarshiftError, match=r"no space left for .*choose another file$"):
        write_parquet(tensors(10), tmp_path / "part.parquet")
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_either_format(command, tmp_path):
    export = ("splits", "export", "scan/length", "--part", "ood_test")
    shown = json.loads(command(*export, "--to", "parquet", "--out", tmp_path / "p", "--json").stdout)
    assert (shown["rows"], shown["files"]) == (3920, ["p"])
    assert shown["bytes"] == (tmp_path / "p").stat().st_size
    sharded = (*export, "--to", "webdataset", "--out", tmp_path / "w", "--shard-bytes")
    assert command(*sharded, "3MB").stdout.startswith(f"scan/length@1, ood_test: 3,920 rows in {tmp_path / 'w'}, ")
    assert len(list((tmp_path / "w").glob("*.tar"))) == 2
    refused = one_line_error(command(*sharded, "lots"))
    assert "--shard-bytes: 'lots' is not a size: write for example 10GB" in refused


@pytest.mark.parametrize(
    ("part", "to", "shard_bytes", "said"),
    [
        ("ood", "parquet", None, "no part of scan/length@1 named 'ood': did you mean ood_test"),
        ("train", "csv", None, "no format of export named 'csv': choose from parquet, webdataset"),
        ("train", "parquet", "1MB", "--shard-bytes requires --to webdataset"),
        ("train", "webdataset", "0", "--shard-bytes: '0' is less than one byte"),
    ],
)
def test_what_cannot_be_written_is_one_line_and_nothing_is_there(part, to, shard_bytes, said, tmp_path):
    with pytest.raises(FarshiftError, match=said):
        export.export_part(lambda: load("scan/length", part), to, tmp_path / "out", shard_bytes)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over_a_file_or_through_one(tmp_path):
    own = tmp_path / "file"
    own.write_text("mine")
    for path, what in ((own, "exists already: choose another file"), (own / "part.parquet", "cannot be written")):
        with pytest.raises(FarshiftError, match=what):
            write_parquet(tensors(), path)
    assert own.read_text() == "mine"
