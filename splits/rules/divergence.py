"""Divergence: a search maximises the divergence of the test's compounds from training's.

The search compares sums of powers, whose last digits differ between processors: manifests of these rules ship their
rows (`ships_rows = true`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.divergence import Units, find_runs, split_words
from ..measures.mcd import Split, search_split
from ..measures.words import group_by_word, read_text_column

if TYPE_CHECKING:
    import pyarrow as pa


def mcd(
    table: pa.Table,
    *,
    field: str,
    seed: str,
    test_rows: int | None = None,
    test_share: float | None = None,
    atom_bound: float = 0.02,
    compound_words: int = 2,
    group_words: list[str] | None = None,
) -> Assignment:
    """Maximum compound divergence at an atom divergence of at most `atom_bound` (Keysers et al. 2020, arXiv
    1912.09713): atoms are the words of `field`, compounds its n-grams of `compound_words` words.

    Exactly one of `test_rows` and `test_share` (of all rows) sets the number of `ood_test` rows; the others train, and
    contain every atom. Severity is the share of a row's compounds that do not occur in training.

    Parameters:
        field: the text whose words are atoms.
        test_rows: the number of rows in `ood_test`.
        test_share: alternatively, the share of all rows.
        atom_bound: the largest atom divergence (Chernoff divergence at alpha 0.5), from 0 to 1.
        compound_words: the number of words in a compound.

    Example:
        parameters = { field = "text", test_share = 0.2, seed = "reviews/mcd@1" }
    """
    rows = _count_test_rows(table.num_rows, test_rows, test_share)
    atoms, compounds = _make_units(table, field, compound_words)
    split = search_split(atoms, compounds, rows, seed=seed, atom_bound=atom_bound)
    return _make_assignment(table, split, compounds, group_words)


def tmcd(
    table: pa.Table,
    *,
    field: str,
    seed: str,
    test_rows: int | None = None,
    test_share: float | None = None,
    compound_words: int = 2,
    group_words: list[str] | None = None,
) -> Assignment:
    """Target maximum compound divergence (Shaw et al. 2021, arXiv 2010.12725): like `mcd`, but every atom needs to
    occur only once in training. In the paper `field` is the target, such as a program.

    Parameters:
        field: the text whose words are atoms.
        test_rows: the number of rows in `ood_test`.
        test_share: alternatively, the share of all rows.
        compound_words: the number of words in a compound.

    Example:
        parameters = { field = "program", test_share = 0.2, seed = "programs/tmcd@1" }
    """
    rows = _count_test_rows(table.num_rows, test_rows, test_share)
    atoms, compounds = _make_units(table, field, compound_words)
    return _make_assignment(table, search_split(atoms, compounds, rows, seed=seed), compounds, group_words)


def _count_test_rows(rows: int, test_rows: int | None, test_share: float | None) -> int:
    if test_share is None and test_rows is not None:
        return test_rows
    if test_rows is not None or test_share is None:
        raise BadDefinition("give one of test_rows and test_share")
    if not 0 < test_share < 1:
        raise BadDefinition(f"test_share = {test_share}: a share of the rows, between 0 and 1")
    return round(test_share * rows)


def _make_units(table: pa.Table, field: str, compound_words: int) -> tuple[Units, Units]:
    if compound_words < 2:
        raise BadDefinition(f"compound_words = {compound_words}: a compound has at least two words")
    atoms = split_words(read_text_column(table, field))
    return atoms, find_runs(atoms, compound_words)


def _make_assignment(table: pa.Table, split: Split, compounds: Units, group_words: list[str] | None) -> Assignment:
    unseen = compounds.counts(~split.test) == 0
    sizes = np.bincount(compounds.row, minlength=compounds.rows)
    new = np.bincount(compounds.row[unseen[compounds.code]], minlength=compounds.rows)
    return Assignment(
        part=np.where(split.test, "ood_test", "train"),
        severity=new / np.maximum(sizes, 1),
        group=group_by_word(table, group_words),
        notes={"atom_divergence": split.atoms, "compound_divergence": split.compounds},
    )
