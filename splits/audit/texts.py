"""Texts: near duplicates, rows that share worked examples, and words, bigrams and trigrams that do not occur in
training (Keysers et al. 2020; see `splits.measures.divergence`)."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.engines import map_in_threads
from ..measures.divergence import ATOMS, COMPOUNDS, Units, chernoff_coefficient, find_runs, split_words
from ..measures.near_duplicates import RESEMBLANCE, make_shingles, measure_max_overlap
from ..rows import digest_repeated_inputs
from .parted import RANDOM, Mask, PartedRows

if TYPE_CHECKING:
    import pyarrow as pa

_LARGE, _SAMPLE = 50_000, 5_000
"""In a larger split, near duplicates are sought for this many rows of each part, drawn by row id."""

_AMONG = 100_000
"""The most rows of a part that are searched for near duplicates, drawn by row id."""


def count_duplicate_inputs(rows: PartedRows) -> dict[str, dict[str, int]]:
    """Count equal inputs: `within` each part the rows beyond the first, `across` two parts the distinct shared
    inputs."""
    places, digests = digest_repeated_inputs(rows.table, rows.schema)
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
    names = [field.name for field in rows.schema.of_role("input") if field.item == "string"]
    if not names:
        return {}
    count = {name: int(mask.sum()) for name, mask in rows.masks.items()}
    some = rows.thinned(_AMONG)
    texts = make_shingles(_join_columns(some.table, names))
    large = rows.table.num_rows > _LARGE
    chosen = {name: some.sample(name, _SAMPLE if large else _LARGE) for name in rows.names}
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
    names = [field.name for field in rows.schema.of_role("input") if field.item == "string"]
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


_ROWS = 100_000
"""The most rows of a part whose bigrams and trigrams are counted, drawn by row id; words are counted in all rows."""

_CHUNK, _AT_ONCE = 1 << 16, 8

_LENGTHS = {"token": 1, "pair": 2, "triple": 3}


def measure_texts(rows: PartedRows) -> dict[str, Any]:
    """For each text field with several words, input or label, compare each part with training, and also a random split
    of train and ood_test, which distinguishes new tokens from rare ones."""
    label = rows.schema[rows.definition.label]
    fields = dict.fromkeys((*rows.schema.of_role("input"), label))
    some = rows.thinned(_ROWS)
    measures = {}
    for field in fields:
        if field.type != "string":
            continue
        singles = split_words(some.table[field.name])
        units = {name: find_runs(singles, length) for name, length in _LENGTHS.items()}
        if some.evaluated and some.masks["train"][units["pair"].row].any():
            measures[field.name] = {name: _measure_pair(units, *pair) for name, pair in some.pairs().items()}
            if some is not rows:
                _count_all_tokens(rows, field.name, measures[field.name])
    return measures


def _count_all_tokens(rows: PartedRows, field: str, measures: dict[str, Any]) -> None:
    """Replace the unseen tokens of the sampled rows by those of all rows: a rare word that the sample missed is not
    unseen."""
    known = {name: _collect_vocabulary(rows.table[field], mask) for name, mask in rows.masks.items()}
    for name in rows.evaluated:
        measures[name]["unseen_tokens"] = len(known[name] - known["train"])
    measures.get(RANDOM, {}).pop("unseen_tokens", None)
    measures["sampled"] = _ROWS


def _collect_vocabulary(texts: pa.ChunkedArray, mask: Mask) -> set[str]:
    """Return the words of the masked rows; memory holds one chunk of rows and the words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def different(start: int) -> pa.Array:
        some = texts.slice(start, _CHUNK).filter(pa.array(mask[start : start + _CHUNK]))
        return pc.unique(pc.list_flatten(pc.utf8_split_whitespace(some)))

    tokens: set[str] = set()
    for start in range(0, len(texts), _CHUNK * _AT_ONCE):
        starts = range(start, min(start + _CHUNK * _AT_ONCE, len(texts)), _CHUNK)
        tokens.update(pc.unique(pa.chunked_array(map_in_threads(different, starts))).to_pylist())
    return tokens - {""}


def _measure_pair(units: dict[str, Units], train: Mask, test: Mask) -> dict[str, Any]:
    tokens = units["token"]
    measures: dict[str, Any] = {"unseen_tokens": int((_find_unseen(tokens, train) & (tokens.counts(test) > 0)).sum())}
    for name in ("pair", "triple"):
        some = units[name]
        new = np.zeros(some.rows, bool)
        new[some.row[_find_unseen(some, train)[some.code]]] = True
        measures[f"rows_with_unseen_{name}"] = round(float(new[test].mean()), 4)
    counts = {name: (some.counts(train), some.counts(test)) for name, some in units.items()}
    measures["divergence"] = {
        f"{name}s": {str(alpha): round(1 - chernoff_coefficient(p, q, alpha), 4) for alpha in (ATOMS, COMPOUNDS)}
        for name, (p, q) in counts.items()
        if p.any() and q.any()
    }
    return measures


def _find_unseen(units: Units, train: Mask) -> Mask:
    return np.asarray(units.counts(train) == 0)
