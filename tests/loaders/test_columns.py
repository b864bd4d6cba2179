"""Columns made ready for many batches give the values that they gave before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from farshift.loaders.batching import columns
from farshift.loaders.batching.columns import FixedColumn, TextColumn, prepare_column
from farshift.loaders.part import Part
from farshift.splits.schema import Field, Schema

ROWS = 3000
PLACES = np.random.default_rng(0).permutation(ROWS)
FEW = np.array(["London", "Paris", "Zürich"])[np.arange(ROWS) % 3]
MANY = np.array([f"text {number}" for number in range(ROWS)])


def part() -> Part:
    fields = Field("image", "uint8[4,8]", "input"), Field("label", "int64", "label"), Field("city", "string", "meta")
    table = pa.table(
        {
            "image": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(ROWS * 32).astype(np.uint8)), 32),
            "label": np.arange(ROWS),
            "city": pa.array(FEW),
            "row_id": np.arange(ROWS, dtype=np.uint64),
        }
    )
    override = np.ma.masked_array(np.full(ROWS, -1), mask=np.arange(ROWS) % 5 != 0)
    return Part("made/part", "0" * 64, "train", Schema(fields), "label", table, PLACES, {}, override)


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("seed", [None, 3])
def test_batches_of_all_columns_have_the_rows_values(seed, reuse):
    built, seen = part(), 0
    for batch in built.batches(256, seed=seed, text="str", reuse=reuse):
        rows = batch["row_id"].astype(int)
        seen += len(rows)
        at = np.argsort(PLACES)[rows]
        assert batch["city"].tolist() == FEW[rows].tolist()
        assert batch["label"].tolist() == np.where(at % 5 == 0, -1, rows).tolist()
        assert (batch["image"].reshape(-1, 32)[:, 0] == (rows * 32).astype(np.uint8)).all()
    assert seen == ROWS


@pytest.mark.parametrize("reuse", [False, True])
@pytest.mark.parametrize("seed", [None, 3])
def test_a_batch_s_texts_are_the_caller_s_own(seed, reuse):
    built = part()
    first, second = list(built.batches(256, seed=seed, text="str", reuse=reuse))[:2]
    stored = second["city"].tolist()
    first["city"][:] = "Basel"
    assert second["city"].tolist() == stored
    assert "Basel" not in next(iter(built.batches(256, seed=seed, text="str", reuse=reuse)))["city"].tolist()


def test_a_text_of_few_values_has_one_object_for_each():
    (batch,) = part().batches(ROWS, text="str")
    assert len({id(text) for text in batch["city"]}) == 3


@pytest.mark.parametrize(
    "stored",
    [
        pa.array(MANY),
        pa.array([f"{number % 5}".encode() for number in range(ROWS)]),
        pa.array([None, *["a"] * (ROWS - 1)]),
        pa.array([*["a"] * columns._SAMPLE, *(f"{number}" for number in range(2 * columns._FEW))]),
    ],
    ids=["many", "bytes", "with holes", "few at first alone"],
)
def test_other_texts_are_read_as_before(stored):
    column = TextColumn(stored)
    assert prepare_column(column, len(stored), "str") is column


def test_wide_columns_large_parts_and_texts_as_bytes_are_read_as_before(monkeypatch):
    wide = FixedColumn(np.zeros((ROWS, 17), np.uint8), PLACES)
    assert prepare_column(wide, ROWS, "str") is wide
    narrow, text = FixedColumn(np.arange(ROWS), PLACES), TextColumn(pa.array(FEW), PLACES)
    assert prepare_column(narrow, ROWS, "str").lies_in_order
    assert prepare_column(text, ROWS, "bytes") is text
    monkeypatch.setattr(columns, "_KEPT_ROWS", ROWS - 1)
    assert prepare_column(narrow, ROWS, "str") is narrow


@pytest.mark.parametrize("seed", [None, 3])
def test_a_scattered_column_is_gathered_when_it_is_read_for_a_second_time(seed, monkeypatch):
    built = part()
    passes = []
    for _ in range(3):
        passes.append([batch["image"] for batch in built.batches(256, seed=seed, columns=["image"])])
        where = built._readers["image", "codes"]
        assert where.lies_in_order == (len(passes) > 1), "one pass alone would not be worth it"
    for later in passes[1:]:
        assert all((item == other).all() for item, other in zip(passes[0], later, strict=True))
    passes[1][0][:] = 7
    assert (next(built.batches(256, seed=seed, columns=["image"]))["image"] == passes[0][0]).all(), "batches are copies"
    monkeypatch.setattr(columns, "_KEPT_BYTES", ROWS * 32 - 1)
    large = part()
    for _ in range(2):
        next(large.batches(256, columns=["image"]))
    assert not large._readers["image", "codes"].lies_in_order
