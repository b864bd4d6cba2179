"""Texts: words, bigrams and trigrams that do not occur in training, and the divergence of their distributions
(Keysers et al. 2020; see `splits.divergence`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.threads import map_in_threads
from ..measures.divergence import ATOMS, COMPOUNDS, Units, chernoff_coefficient, find_runs, split_words
from .parted import RANDOM, Mask, PartedRows

if TYPE_CHECKING:
    import pyarrow as pa

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
