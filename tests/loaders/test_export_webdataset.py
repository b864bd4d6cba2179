"""WebDataset shards: the real `webdataset` reads them, and each row proves itself."""

from __future__ import annotations

import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.loaders.export import webdataset
from farshift.loaders.part import Part
from farshift.loaders.split import open_split
from farshift.splits.rows import compute_row_digests, compute_row_ids, get_digest_prefixes
from farshift.splits.schema import Field, Schema
from hypothesis import given, settings
from hypothesis import strategies as st

SCHEMA = Schema(
    (
        Field("pixels", "uint8[2,3]", "input"),
        Field("wave", "float32[4]", "input"),
        Field("text", "string", "input"),
        Field("raw", "bytes", "meta"),
        Field("wide", "uint64", "meta"),
        Field("yes", "bool", "label"),
    )
)


def made(rows: int, seed: int = 0) -> Part:
    """A part with a field of every sort, rows of different lengths."""
    draw = np.random.default_rng(seed)
    columns = {
        "pixels": list(draw.integers(0, 256, (rows, 6)).tolist()),
        "wave": draw.normal(size=(rows, 4)).astype("f4").tolist(),
        "text": [f"{position}: ü " * int(draw.integers(1, 90)) for position in range(rows)],
        "raw": [draw.bytes(int(draw.integers(0, 700))) for _ in range(rows)],
        "wide": draw.integers(0, 2**64, rows, dtype=np.uint64).tolist(),
        "yes": (draw.random(rows) < 0.5).tolist(),
    }
    table = pa.table({name: pa.array(columns[name], SCHEMA[name].arrow()) for name in columns})
    ids = compute_row_ids(table, SCHEMA)
    table = table.append_column("row_id", [ids]).sort_by("row_id")
    severity = {"severity": np.arange(rows, dtype=np.int64)}
    return Part("made/split@1", "0" * 64, "train", SCHEMA, "yes", table, np.arange(rows), severity)


def manifest(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())


def shards(folder: Path) -> list[str]:
    return [str(folder / shard["file"]) for shard in manifest(folder)["shards"]]


def read_back(folder: Path, schema: Schema) -> tuple[list[dict], pa.Table]:
    """The samples as the real webdataset reads them, and the rows that they make."""
    webdataset = pytest.importorskip("webdataset")
    samples = list(webdataset.WebDataset(shards(folder), shardshuffle=False).decode())
    columns = {}
    for field in schema.fields:
        if field.shape:
            arrays = [sample[f"{field.name}.npy"] for sample in samples]
            assert all(array.shape == field.shape and array.dtype == field.item for array in arrays)
            values = [array.ravel() for array in arrays]
        elif field.item == "bytes":
            values = [sample[f"{field.name}.bin"] for sample in samples]
        else:
            values = [sample["json"][field.name] for sample in samples]
        columns[field.name] = pa.array(values, field.arrow())
    return samples, pa.table(columns)


@pytest.mark.parametrize("name", ["scan/addprim_jump", "prefix_sums/32_to_64", "modadd97/xi35"])
def test_the_real_webdataset_reads_rows_that_recompute_to_their_ids_and_checks(name, tmp_path):
    opened = open_split(name)
    part = opened.part("train").select(np.arange(0, 2000, 3))
    samples, rows = read_back(webdataset.write(part, tmp_path / "out", 300_000), part.schema)
    assert len(shards(tmp_path / "out")) > 1
    assert [int(sample["__key__"], 16) for sample in samples] == part.row_ids.tolist()
    assert compute_row_ids(rows, part.schema).tolist() == part.row_ids.tolist()
    index = pq.read_table(next((tmp_path / "out").glob("*.index.parquet")))
    assert index["row_id"].to_pylist() == part.row_ids.tolist()
    assert get_digest_prefixes(compute_row_digests(rows, part.schema)).tolist() == index["check"].to_pylist()
    published = opened.rows["check"].to_numpy()[part.source_indices]
    assert ((index["check"].to_numpy() == published) | part.corrupted).all()
    expected = part.arrow().to_pylist()
    assert [sample["json"] for sample in samples] == expected, "all columns, the label as given among them"


@given(rows=st.integers(1, 40), shard_bytes=st.integers(1, 30_000), seed=st.integers(0, 99))
@settings(max_examples=15)
def test_every_sort_of_field_comes_back_whatever_the_size_of_the_shards(rows, shard_bytes, seed, tmp_path_factory):
    part = made(rows, seed)
    folder = webdataset.write(part, tmp_path_factory.mktemp("export") / "out", shard_bytes)
    _, back = read_back(folder, SCHEMA)
    expected = part.arrow([field.name for field in SCHEMA.fields])
    assert back.combine_chunks().equals(expected.combine_chunks())
    output = manifest(folder)
    assert sum(shard["rows"] for shard in output["shards"]) == output["rows"] == rows
    assert all(shard["bytes"] <= shard_bytes or shard["rows"] == 1 for shard in output["shards"])
    for record in (output["index"], *output["shards"]):
        content = (folder / record["file"]).read_bytes()
        assert (len(content), sha256(content).hexdigest()) == (record["bytes"], record["sha256"])


def test_a_byte_range_of_the_index_is_one_row(tmp_path):
    part = made(30)
    folder = webdataset.write(part, tmp_path / "out", 9_000)
    index = pq.read_table(folder / manifest(folder)["index"]["file"]).to_pylist()
    arrays = part.numpy()
    for position in (0, 7, 29):
        row = index[position]
        shard = Path(shards(folder)[row["shard"]]).read_bytes()
        piece = io.BytesIO(shard[row["offset"] : row["offset"] + row["length"]])
        key = f"{part.row_ids[position]:016x}"
        with tarfile.open(fileobj=piece) as sample:
            names = sample.getnames()
        assert names == [f"{key}.json", *(f"{key}.{end}" for end in ("pixels.npy", "raw.bin", "wave.npy"))]

        def member(name: str, row: dict = row, shard: bytes = shard) -> bytes:
            return shard[row[f"{name}.offset"] : row[f"{name}.offset"] + row[f"{name}.length"]]

        assert np.array_equal(np.load(io.BytesIO(member("pixels.npy"))), arrays["pixels"][position])
        assert np.array_equal(np.load(io.BytesIO(member("wave.npy"))), arrays["wave"][position])
        assert member("raw.bin") == arrays["raw"][position]
        assert json.loads(member("json"))["text"] == arrays["text"][position]


def test_the_same_part_gives_the_same_bytes_and_tells_nothing_of_the_machine(tmp_path):
    part = made(25)
    item, other = (webdataset.write(part, tmp_path / name, 9_000) for name in ("one", "other"))
    names = sorted(path.name for path in item.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    assert all((item / name).read_bytes() == (other / name).read_bytes() for name in names)
    assert names[0] == "made-split-train-000000.tar"
    with tarfile.open(item / names[0]) as shard:
        assert {(m.mtime, m.uid, m.gid, m.uname, m.gname, m.mode) for m in shard} == {(0, 0, 0, "", "", 0o644)}


def test_what_cannot_be_exported_is_one_line_and_leaves_nothing(tmp_path):
    part = made(5)
    (tmp_path / "file").write_text("")
    for taken in (tmp_path / "file", webdataset.write(part, tmp_path / "there")):
        with pytest.raises(FarshiftError, match="exists already: choose another folder"):
            webdataset.write(part, taken)
    with pytest.raises(FarshiftError, match="shard_bytes must be at least 1, not 0"):
        webdataset.write(part, tmp_path / "out", 0)
    with pytest.raises(FarshiftError, match="made/split@1, train: a row is selected twice"):
        webdataset.write(part.select(np.array([1, 1])), tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "there"]


def test_a_write_that_breaks_off_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "farshift.loaders.export.webdataset._write_index", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
    )
    with pytest.raises(FarshiftError, match=r"no space left for .*choose another folder$"):
        webdataset.write(made(5), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
