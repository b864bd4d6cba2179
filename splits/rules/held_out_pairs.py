"""Held-out pairs: both elements of a pair occur in training, but not together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import count_occurrences, read_numeric_column
from ._conditions import match_limits

if TYPE_CHECKING:
    import pyarrow as pa


def words(
    table: pa.Table,
    *,
    field: str,
    held_out: list[str],
    id_test: int,
    alike: str,
    seed: str,
    among: dict[str, int] | None = None,
) -> Assignment:
    """Rows whose text `field` contains any of the words `held_out` are `ood_test`; the others train, except `id_test`
    rows drawn by `seed` such that the integer field `alike`, such as a depth, has the same distribution in both tests,
    which then differ only in the held-out words.

    The field lists the combinations in a row, such as pairs of nested operators ("SM>MED"). Severity counts the
    distinct held-out words of a row; the group is the held-out words it has, or "none". `among` drops the rows that
    exceed its value of another field.

    Parameters:
        field: the text field that lists the combinations in a row.
        held_out: the held-out words.
        id_test: the number of rows in `id_test`.
        alike: the integer field with the same distribution in both tests.
    """
    in_limits = match_limits(table, among)
    if not held_out:
        raise BadDefinition("held_out names no word")
    contains = np.stack([count_occurrences(table, field, word) > 0 for word in held_out], axis=1)
    counts = contains[in_limits].sum(axis=0).tolist()
    absent = [word for word, count in zip(held_out, counts, strict=True) if not count]
    if absent:
        raise BadDefinition(f"no row has {', '.join(absent)} in {field!r}")
    severity = contains.sum(axis=1).astype(np.int64)
    group = np.array(
        [" ".join(word for word, has in zip(held_out, row, strict=True) if has) or "none" for row in contains.tolist()]
    )
    part = np.where(in_limits, np.where(severity > 0, "ood_test", "train"), "")
    part[_sample_matched_rows(table, part, alike, id_test, seed)] = "id_test"
    return Assignment(part=part, severity=severity, group=group)


def corner(table: pa.Table, *, above: dict[str, int]) -> Assignment:
    """Rows that exceed every bound of `above` (field to number) are `ood_test`, the others train: large values of each
    field occur in training, but never together. The group is the combination of values, such as "depth 6, breadth 3".

    Parameters:
        above: for each number field the bound that held-out rows exceed.
    """
    if len(above) < 2:
        raise BadDefinition(f"above = {above}: a corner needs bounds of two fields or more")
    columns = {field: read_numeric_column(table, field) for field in above}
    beyond = np.all([columns[field] > most for field, most in above.items()], axis=0)
    rows = zip(*(columns[field].tolist() for field in above), strict=True)
    group = np.array([", ".join(f"{field} {value}" for field, value in zip(above, row, strict=True)) for row in rows])
    return Assignment(part=np.where(beyond, "ood_test", "train"), group=group)


def _sample_matched_rows(
    table: pa.Table, part: NDArray[np.str_], field: str, count: int, seed: str
) -> NDArray[np.int64]:
    """Draw `count` training rows by `seed` such that `field` has the same distribution as in `ood_test`; return their
    positions."""
    values, ids = read_numeric_column(table, field), table["row_id"].to_numpy()
    kinds, tested = np.unique(values[part == "ood_test"], return_counts=True)
    upto = np.rint(np.cumsum(tested) / tested.sum() * count).astype(np.int64)
    chosen = []
    for kind, quota in zip(kinds.tolist(), np.diff(upto, prepend=0).tolist(), strict=True):
        trained = np.flatnonzero((part == "train") & (values == kind))
        if quota > len(trained):
            raise BadDefinition(
                f"id_test = {count} needs {quota} training rows with {field} = {kind}; there are {len(trained)}"
            )
        chosen.append(trained[draw_permutation(f"{seed}/id_test/{kind}", ids[trained])[:quota]])
    return np.concatenate(chosen)
