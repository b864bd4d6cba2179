"""What texts consist of: words, pairs and triples of neighbouring words that training does not show, and how far their
distributions diverge (Keysers et al. 2020; see `splits.divergence`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..divergence import ATOMS, COMPOUNDS, Units, chernoff, runs, words
from .parted import Mask, PartedRows

_LENGTHS = {"token": 1, "pair": 2, "triple": 3}


def texts(rows: PartedRows) -> dict[str, Any]:
    """For each text of several words, input or label: each part measured against training, and, to tell what is new
    from what is only rare, a random split of train and ood_test."""
    label = rows.schema[rows.definition.label]
    fields = dict.fromkeys((*rows.schema.of_role("input"), label))
    found = {}
    for field in fields:
        if field.type != "string":
            continue
        singles = words(rows.table[field.name])
        units = {name: runs(singles, length) for name, length in _LENGTHS.items()}
        if rows.evaluated and rows.masks["train"][units["pair"].row].any():
            found[field.name] = {name: _measured(units, *pair) for name, pair in rows.pairs().items()}
    return found


def _measured(units: dict[str, Units], train: Mask, test: Mask) -> dict[str, Any]:
    tokens = units["token"]
    found: dict[str, Any] = {"unseen_tokens": int((_unseen(tokens, train) & (tokens.counts(test) > 0)).sum())}
    for name in ("pair", "triple"):
        some = units[name]
        new = np.zeros(some.rows, bool)
        new[some.row[_unseen(some, train)[some.code]]] = True
        found[f"rows_with_unseen_{name}"] = round(float(new[test].mean()), 4)
    counts = {name: (some.counts(train), some.counts(test)) for name, some in units.items()}
    found["divergence"] = {
        f"{name}s": {str(alpha): round(1 - chernoff(p, q, alpha), 4) for alpha in (ATOMS, COMPOUNDS)}
        for name, (p, q) in counts.items()
        if p.any() and q.any()
    }
    return found


def _unseen(units: Units, train: Mask) -> Mask:
    return np.asarray(units.counts(train) == 0)
