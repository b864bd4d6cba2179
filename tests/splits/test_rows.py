"""What a row is, byte for byte."""

from __future__ import annotations

import struct
from hashlib import sha256
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.acquire.source import add_row_ids
from farshift.splits.rows import (
    compute_first_ids,
    compute_numbered_ids,
    compute_row_digests,
    compute_row_ids,
    compute_set_digest,
    get_digest_prefixes,
    iterate_canonical_rows,
    read_repeated_inputs,
)
from farshift.splits.schema import Field, Schema
from hypothesis import given
from hypothesis import strategies as st

TEXTS = Schema((Field("question", "string", "input"), Field("answer", "string", "label")))
MIXED = Schema(
    (
        Field("count", "int64", "input"),
        Field("mean", "float64", "input"),
        Field("name", "string", "input"),
        Field("grid", "uint8[2,2]", "input"),
        Field("flag", "bool", "label"),
    )
)

rows_of_texts = st.lists(st.tuples(st.text(max_size=6), st.text(max_size=6)), min_size=1, max_size=40)
mixed_rows = st.lists(
    st.tuples(
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.lists(st.integers(0, 255), min_size=4, max_size=4),
        st.booleans(),
    ),
    min_size=1,
    max_size=20,
)


def texts(rows: list[tuple[str, str]]) -> pa.Table:
    return pa.table({"question": [a for a, _ in rows], "answer": [b for _, b in rows]}, schema=TEXTS.arrow())


def field_bytes(name: str, kind: str, payload: bytes, sized: bool = False) -> bytes:
    head = struct.pack("<H", len(name)) + name.encode() + struct.pack("<H", len(kind)) + kind.encode()
    return head + (struct.pack("<Q", len(payload)) if sized else b"") + payload


def by_hand(row: tuple[int, float, str, list[int], bool]) -> bytes:
    """The canonical bytes as the module's docstring describes them, written without NumPy or Arrow."""
    count, mean, name, grid, flag = row
    return b"\x01" + b"".join(
        (
            field_bytes("count", "int64", struct.pack("<q", count)),
            field_bytes("flag", "bool", bytes([flag])),
            field_bytes("grid", "uint8[2,2]", bytes(grid)),
            field_bytes("mean", "float64", struct.pack("<d", mean + 0.0)),
            field_bytes("name", "string", name.encode(), sized=True),
        )
    )


@given(mixed_rows)
def test_canonical_bytes_are_those_written_by_hand(rows):
    columns = dict(zip(("count", "mean", "name", "grid", "flag"), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table(columns, schema=MIXED.arrow())
    expected = [by_hand(row) for row in rows]
    assert [bytes(row) for row in iterate_canonical_rows(table, MIXED.fields)] == expected
    assert compute_row_digests(table, MIXED).tobytes() == b"".join(sha256(row).digest() for row in expected)


@given(rows_of_texts, st.randoms(use_true_random=False))
def test_order_changes_neither_ids_nor_the_set_digest(rows, shuffler):
    shuffled = rows.copy()
    shuffler.shuffle(shuffled)
    item, other = texts(rows), texts(shuffled)
    assert compute_set_digest(compute_row_digests(item, TEXTS)) == compute_set_digest(compute_row_digests(other, TEXTS))
    assert sorted(zip(compute_row_ids(item, TEXTS).tolist(), rows, strict=True)) == sorted(
        zip(compute_row_ids(other, TEXTS).tolist(), shuffled, strict=True)
    )


@given(rows_of_texts)
def test_equal_inputs_get_different_ids(rows):
    ids = compute_row_ids(texts(rows + rows), TEXTS)
    assert len(set(ids.tolist())) == 2 * len(rows)


@given(mixed_rows)
def test_rows_have_the_same_digests_however_many_are_encoded_at_a_time(rows):
    columns = dict(zip(("count", "mean", "name", "grid", "flag"), map(list, zip(*rows, strict=True)), strict=True))
    table = pa.table(columns, schema=MIXED.arrow())
    numbers = np.arange(len(rows))
    together = (
        compute_row_digests(table, MIXED),
        compute_first_ids(table, MIXED),
        compute_numbered_ids(table, MIXED, numbers),
    )
    with patch("farshift.splits.rows._CHUNK_BYTES", 1):
        singly = (
            compute_row_digests(table, MIXED),
            compute_first_ids(table, MIXED),
            compute_numbered_ids(table, MIXED, numbers),
        )
    for item, other in zip(together, singly, strict=True):
        assert np.array_equal(item, other)
    inputs = list(iterate_canonical_rows(table, MIXED.of_role("input")))
    by_row = [sha256(row + struct.pack("<Q", number)).digest()[:8] for number, row in enumerate(inputs)]
    assert [value.to_bytes(8, "big") for value in together[2].tolist()] == by_row


@given(st.lists(st.tuples(st.sampled_from([b"\0" * 8, b"\xff" * 8, b"12345678"]), st.integers(0, 3)), max_size=12))
def test_the_set_digest_is_that_of_the_sorted_digests(ends):
    """Digests that begin alike and end differently are as good as never drawn: made here, they are sorted in full."""
    digests = [head + bytes(22) + bytes([end, 0]) for head, end in ends]
    result = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 32)
    assert compute_set_digest(result) == sha256(b"".join(sorted(digests))).hexdigest()


@given(rows_of_texts)
def test_a_source_says_which_rows_share_their_inputs(rows):
    table = add_row_ids(texts(rows), TEXTS)[0]
    questions = [question for question, _ in rows]
    repeated = set(read_repeated_inputs(table).tolist())
    assert sorted(question for question in questions if questions.count(question) > 1) == sorted(
        question
        for item, question in zip(table["row_id"].to_pylist(), table["question"].to_pylist(), strict=True)
        if item in repeated
    )


def test_a_source_with_too_many_repeats_does_not_name_them():
    with patch("farshift.splits.rows._MOST_REPEATED", 3):
        assert read_repeated_inputs(add_row_ids(texts([("q", "a")] * 4), TEXTS)[0]) is None
        assert len(read_repeated_inputs(add_row_ids(texts([("q", "a")] * 3), TEXTS)[0])) == 3
    assert read_repeated_inputs(texts([("q", "a")])) is None


def test_an_id_says_nothing_of_the_label():
    left, right = texts([("q", "a"), ("r", "b")]), texts([("q", "x"), ("r", "y")])
    assert compute_row_ids(left, TEXTS).tolist() == compute_row_ids(right, TEXTS).tolist()
    assert compute_set_digest(compute_row_digests(left, TEXTS)) != compute_set_digest(compute_row_digests(right, TEXTS))


@given(rows_of_texts)
def test_slices_and_chunks_of_a_table_have_the_same_digests(rows):
    table = texts(rows)
    chunked = pa.concat_tables([table.slice(start, 3) for start in range(0, len(rows), 3)])
    assert compute_row_digests(chunked, TEXTS).tobytes() == compute_row_digests(table, TEXTS).tobytes()
    sliced = texts([("before", "it"), *rows]).slice(1)
    assert compute_row_ids(sliced, TEXTS).tolist() == compute_row_ids(table, TEXTS).tolist()


def test_text_in_two_fields_cannot_be_confused():
    assert compute_row_ids(texts([("ab", "c")]), TEXTS) != compute_row_ids(texts([("a", "bc")]), TEXTS)


def test_negative_zero_is_zero_and_nan_is_refused():
    schema = Schema((Field("x", "float64", "input"),))
    zero, minus = (pa.table({"x": [value]}) for value in (0.0, -0.0))
    assert compute_row_ids(zero, schema).tolist() == compute_row_ids(minus, schema).tolist()
    with pytest.raises(BadData, match="'x' contains NaN"):
        compute_row_ids(pa.table({"x": [float("nan")]}), schema)


def test_frozen_values_never_change():
    """Golden: if these move, every published manifest is void."""
    table = texts([("walk", "I_WALK"), ("look", "I_LOOK")])
    assert [f"{value:016x}" for value in compute_row_ids(table, TEXTS)] == GOLDEN_IDS
    assert compute_set_digest(compute_row_digests(table, TEXTS)) == GOLDEN_SET
    assert get_digest_prefixes(compute_row_digests(table, TEXTS)).dtype == np.uint64


GOLDEN_IDS = ["528dff311304c4d1", "d119c29c0b6735c9"]
GOLDEN_SET = "19dfb72e9b199b4337b42fb5b63296721477495d70667cfdc71db8746f8e360a"


def test_a_schema_refuses_what_it_cannot_hold():
    with pytest.raises(BadDefinition, match="unknown type 'int32'"):
        Field("x", "int32", "input")
    with pytest.raises(BadDefinition, match="row_id"):
        Field("row_id", "int64", "input")
    with pytest.raises(BadDefinition, match="at least one field of role 'input'"):
        Schema((Field("x", "int64", "label"),))
    with pytest.raises(BadDefinition, match="gives no column answer"):
        TEXTS.conform(pa.table({"question": ["q"]}), "source t")
    with pytest.raises(BadDefinition, match="missing values in answer"):
        TEXTS.conform(pa.table({"question": ["q"], "answer": pa.array([None], pa.string())}), "source t")
