"""Language imbalance: training is mostly in one language, the test in all languages, on unseen sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.draws import derive_key, draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_names

if TYPE_CHECKING:
    import pyarrow as pa


def imbalance(
    table: pa.Table,
    *,
    language: str,
    meaning: str,
    train: dict[str, int],
    id_test: int,
    ood_test: int,
    high: str,
    low: str,
    seed: str,
) -> Assignment:
    """A given number of sentences per language trains, each `meaning` in one language only; `id_test` further meanings
    are tested in the `high`-resource language, and `ood_test` further ones in the `low`-resource one. The language is
    the group.

    After Schäfer et al. 2024 (Language Imbalance Can Boost Cross-lingual Generalisation, arXiv 2404.07982), where the
    second language is a clone of the first.

    Parameters:
        language: the language field.
        meaning: the field that identifies a meaning; rows with one meaning are translations of each other.
        train: the number of training sentences of each language.
        id_test: the number of meanings tested in the high-resource language.
        ood_test: the number of further meanings tested in the low-resource language.
        high: the high-resource language.
        low: the low-resource language.
    """
    tongues = read_names(table, language)
    meanings, number = np.unique(read_names(table, meaning), return_inverse=True)
    lots = [("train", name, count) for name, count in train.items()]
    lots += [("id_test", high, id_test), ("ood_test", low, ood_test)]
    total = sum(count for _, _, count in lots)
    if total > len(meanings):
        raise BadDefinition(f"{total} meanings are needed, but {meaning!r} has {len(meanings)}")
    absent = sorted({name for _, name, _ in lots} - set(tongues.tolist()))
    if absent:
        raise BadDefinition(f"no row has {language} = {', '.join(absent)}")
    order = draw_permutation(seed, np.array([derive_key(text) for text in meanings.tolist()], np.uint64))
    part = np.full(table.num_rows, "", dtype="U8")
    first = 0
    for name, tongue, count in lots:
        chosen = np.isin(number, order[first : first + count]) & (tongues == tongue)
        if chosen.sum() != count:
            raise BadDefinition(f"only {int(chosen.sum())} of {count} meanings drawn for {name} exist in {tongue}")
        part[chosen] = name
        first += count
    return Assignment(part=part, group=tongues)
