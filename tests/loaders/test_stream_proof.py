"""Nothing is taken on trust: rows, indexes and whole epochs of a stream prove themselves, and every damage is found."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exported import edit_index, export
from farshift import stream
from farshift.core.errors import BadData, Unavailable
from farshift.loaders.split import open_split
from farshift.loaders.stream.open import RowMatcher
from farshift.splits.rows import compute_row_digests, compute_row_ids, find_occurrence_numbers, get_digest_prefixes
from farshift.splits.schema import Field, Schema
from hypothesis import given, settings
from hypothesis import strategies as st

NAME = "modadd97/xi35"


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> Path:
    return export(NAME, "train", tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    return export("prefix_sums/32_to_64", "id_test", tmp_path_factory.mktemp("texts"), 400_000)


def test_an_export_proves_a_part_whose_source_was_never_here(exports, cache):
    streamed = stream(NAME, "train", exports / "shards")
    rows = [row for batch in streamed.batches(500) for row in batch["row_id"].tolist()]
    assert rows == streamed.row_ids.tolist()
    assert len(rows) == 4704
    assert not (cache / "sources").exists()


def test_files_that_prove_nothing_need_rows_that_are_known(tmp_path, cache):
    pq.write_table(pa.table({"command": ["jump"], "actions": ["I_JUMP"]}), tmp_path / "scan.parquet")
    with pytest.raises(
        Unavailable, match="not known on this machine: stream an export of the part.*or run farshift splits pull"
    ):
        stream("scan/length", "train", tmp_path / "scan.parquet")


def test_an_index_that_swaps_rows_is_found_by_the_rows_themselves(exports, tmp_path):
    names = ("shard", "offset", "length", "json.offset", "json.length")

    def swapped(table: pa.Table) -> pa.Table:
        for name in names:
            values = table[name].to_numpy().copy()
            values[[0, 1]] = values[[1, 0]]
            table = table.set_column(table.column_names.index(name), name, [values])
        return table

    part = stream(NAME, "train", edit_index(exports / "shards", tmp_path / "swapped", swapped))
    with pytest.raises(
        BadData, match=rf"row {part.row_ids[0]:016x} differs from the manifest \(.*tar, offset \d+; 2 of"
    ):
        list(part.batches(100))


def read(part) -> list[dict]:
    return [{name: values.tolist() for name, values in batch.items()} for batch in part.batches(250, seed=1)]


def damaged(path: Path, at: int, bit: int) -> bytes:
    content = bytearray(path.read_bytes())
    content[at % len(content)] ^= 1 << bit
    return bytes(content)


@pytest.mark.parametrize("sort", ["shards", "id_test.parquet"])
@given(at=st.integers(0, 2**31), bit=st.integers(0, 7))
@settings(max_examples=20)
def test_a_flipped_bit_gives_the_same_rows_or_one_error_and_never_another_row(texts, sort, at, bit, tmp_path_factory):
    full = tmp_path_factory.mktemp("flip")
    position = full / sort
    if sort == "shards":
        shutil.copytree(texts / sort, position)
        target = sorted(position.glob("*.tar"))[at % 3]
    else:
        target = shutil.copyfile(texts / sort, position)
    target.write_bytes(damaged(target, at // 3, bit))
    right = read(open_split("prefix_sums/32_to_64").part("id_test"))
    try:
        rows = read(stream("prefix_sums/32_to_64", "id_test", position))
    except (BadData, Unavailable) as error:
        assert "\n" not in str(error)
    else:
        assert rows == right


SMALL = Schema((Field("a", "int64", "input"), Field("b", "int64", "label"), Field("c", "string", "meta")))
repeating = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.sampled_from("xy")), min_size=1, max_size=25)


@given(rows=repeating, data=st.data())
def test_rows_of_equal_inputs_are_found_whatever_order_they_pass_in(rows, data):
    def table(some) -> pa.Table:
        columns = zip(*some, strict=True)
        return pa.table({f.name: pa.array(column, f.arrow()) for f, column in zip(SMALL.fields, columns, strict=True)})

    ids, checks = compute_row_ids(table(rows), SMALL), get_digest_prefixes(compute_row_digests(table(rows), SMALL))
    expected = np.array(data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True)), np.int64)
    passing = data.draw(st.permutations(rows))
    matching, step = RowMatcher(ids[expected], checks[expected], SMALL, len(rows)), data.draw(st.integers(1, 9))
    result = [matching.match(table(passing[at : at + step]), at) for at in range(0, len(passing), step)]
    assert sorted(row for some in result for row in some.tolist()) == list(range(len(expected)))
    assert len(set(matching.where.tolist())) == len(expected), "no row stands for two"
    assert [passing[number] for number in matching.where] == [rows[row] for row in expected]
    alone = RowMatcher(ids[expected], checks[expected], SMALL, len(rows))
    if len(expected):
        alone.match(table([rows[row] for row in expected]), 0)
    assert (alone.where >= 0).all(), "also where the source's other rows of these inputs never pass"
    if len(expected):
        numbers = find_occurrence_numbers(table([rows[row] for row in expected]), SMALL, ids[expected], len(rows))
        assert numbers.tolist() == matching.occurrence.tolist()


def test_an_id_that_comes_of_no_inputs_is_refused():
    table = pa.table({"a": [1], "b": [0], "c": ["x"]})
    with pytest.raises(BadData, match="row 0000000000000001: the id does not match the row's inputs"):
        find_occurrence_numbers(table, SMALL, np.array([1], np.uint64), 50)
