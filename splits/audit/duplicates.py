"""Duplicates: equal inputs, near-duplicate texts, and rows that share worked examples."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..measures.near_duplicates import RESEMBLANCE, make_shingles, measure_max_overlap
from ..rows import compute_row_digests, get_digest_prefixes, read_repeated_inputs
from ..schema import Schema
from .parted import PartedRows

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS, _SAMPLE = 50_000, 5_000
"""In a larger split, near duplicates are sought for this many rows of each part, drawn by row id."""

_AMONG = 100_000
"""The most rows of a part that are searched for near duplicates, drawn by row id."""


def count_duplicate_inputs(rows: PartedRows) -> dict[str, dict[str, int]]:
    """Count equal inputs: `within` each part the rows beyond the first, `across` two parts the distinct shared
    inputs."""
    places = np.arange(rows.table.num_rows)
    known = read_repeated_inputs(rows.table)
    if known is not None:  # all other rows have inputs of their own
        places = np.flatnonzero(np.isin(rows.row_ids, known))
    inputs = Schema(rows.schema.of_role("input"))
    table = rows.table.select([field.name for field in inputs.fields])
    digests = get_digest_prefixes(compute_row_digests(table if known is None else table.take(places), inputs))
    masks = {name: mask[places] for name, mask in rows.masks.items()}
    distinct = {name: np.unique(digests[mask]) for name, mask in masks.items()}
    return {
        "within": {name: int(masks[name].sum()) - len(values) for name, values in distinct.items()},
        "across": {
            f"{a}/{b}": len(np.intersect1d(distinct[a], distinct[b], assume_unique=True))
            for a, b in combinations(distinct, 2)
        },
    }


def measure_near_duplicates(rows: PartedRows) -> dict[str, Any]:
    """Return the share of rows whose text inputs resemble (or equal) those of another row: `within` their own part, and
    `with_train`. Empty if no input is text."""
    names = [field.name for field in rows.schema.of_role("input") if field.type == "string"]
    if not names:
        return {}
    count = {name: int(mask.sum()) for name, mask in rows.masks.items()}
    some = rows.thinned(_AMONG)
    texts = make_shingles(_join_columns(some.table, names))
    large = rows.table.num_rows > _ROWS
    chosen = {name: some.sample(name, _SAMPLE if large else _ROWS) for name in rows.names}
    places = {name: np.flatnonzero(some.masks[name]) for name in rows.names}

    def share(name: str, among: str) -> float:
        return round(float(texts.resembling(chosen[name], places[among]).mean()), 4)

    return {
        "resemblance": RESEMBLANCE,
        "sampled": {name: len(chosen[name]) for name in rows.names if len(chosen[name]) < count[name]},
        **({} if some is rows else {"among": {name: len(places[name]) for name in rows.names}}),
        "within": {name: share(name, name) for name in rows.names},
        "with_train": {name: share(name, "train") for name in rows.evaluated},
    }


def count_shared_examples(rows: PartedRows) -> dict[str, Any]:
    """Count rows whose text inputs contain worked examples (the definition's `examples` separates them): how many share
    `any` example with a training row, and how many `half` or more with a single one. Near duplicates do not show this:
    texts that differ only in their final question resemble each other anyway. Empty if the definition names no
    examples."""
    separator = rows.definition.examples
    names = [field.name for field in rows.schema.of_role("input") if field.type == "string"]
    if not separator or not names:
        return {}
    shares = measure_max_overlap(_join_columns(rows.table, names).to_pylist(), separator, rows.masks["train"])
    return {
        name: {"any": int((part_shares > 0).sum()), "half": int((part_shares >= 0.5).sum())}
        for name in rows.evaluated
        for part_shares in [shares[rows.masks[name]]]
    }


def _join_columns(table: pa.Table, names: list[str]) -> pa.ChunkedArray:
    import pyarrow.compute as pc

    texts = table[names[0]]
    for name in names[1:]:
        texts = pc.binary_join_element_wise(texts, table[name], " ")
    return texts
