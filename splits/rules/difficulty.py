"""Easy-to-hard by estimated difficulty: train on items that many systems solve, test on items that few solve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.difficulty import fit_item_response, rate_with_glicko2
from ..measures.words import read_text_column
from ._conditions import draw_id_test

if TYPE_CHECKING:
    import pyarrow as pa


def item_response_theory(
    table: pa.Table,
    *,
    responses: str,
    model: Literal["1pl", "2pl"],
    easy: float,
    hard: float,
    id_test: int,
    seed: str,
) -> Assignment:
    """Split by the difficulty of a one- or two-parameter item response model (Bock and Aitkin 1981), in standard
    deviations of ability.

    `responses` is a text field with one character per system, the same systems in every row: 1 solved, 0 not solved,
    `-` missing. The easiest share `easy` of the rows is the training part, except `id_test` rows drawn by `seed`; the
    hardest share `hard` is `ood_test`, the rows between are `ood_val`. Severity is the difficulty, to two decimals;
    rows of equal severity stay together.

    Parameters:
        responses: the text field with one character per system.
        model: `1pl` (difficulty) or `2pl` (difficulty and discrimination).
        easy: the share of the rows that are easy.
        hard: the share of the rows that are hard.
        id_test: the number of easy rows in `id_test`.
    """
    fitted = fit_item_response(_read_matrix(table, responses), model)
    return _assign_by_hardness(table, fitted.difficulty.round(2) + 0.0, easy, hard, id_test, seed)


def glicko2_rating(
    table: pa.Table, *, responses: str, systems_a_period: int, easy: float, hard: float, id_test: int, seed: str
) -> Assignment:
    """Split by the Glicko-2 rating of each row, which plays against `systems_a_period` systems in each rating period
    (Glickman 2012). Severity is the rating, rounded to an integer; everything else as in `item_response_theory`.

    Parameters:
        responses: the text field with one character per system.
        systems_a_period: the number of systems that a row plays against in one rating period.
        easy: the share of the rows that are easy.
        hard: the share of the rows that are hard.
        id_test: the number of easy rows in `id_test`.
    """
    items, _ = rate_with_glicko2(_read_matrix(table, responses), systems_a_period=systems_a_period)
    return _assign_by_hardness(table, items.rating.round() + 0.0, easy, hard, id_test, seed)


def _read_matrix(table: pa.Table, field: str) -> NDArray[np.float64]:
    """Return the response matrix, (systems, items)."""
    texts = read_text_column(table, field).to_pylist()
    sizes = {len(text) for text in texts}
    if len(sizes) != 1 or not set("".join(texts)) <= set("01-"):
        raise BadDefinition(
            f"field {field!r}: every row needs one character per system: 1 solved, 0 not solved, - missing"
        )
    codes = np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1).T
    return np.where(codes == ord("-"), np.nan, (codes == ord("1")).astype(np.float64))


def _assign_by_hardness(
    table: pa.Table, hardness: NDArray[np.float64], easy: float, hard: float, id_test: int, seed: str
) -> Assignment:
    """Assign parts by the shares of the easiest and of the hardest rows; each quarter of the range is a group."""
    if not (easy > 0 and hard > 0 and easy + hard <= 1):
        raise BadDefinition(f"easy = {easy}, hard = {hard}: two shares of the rows, together at most 1")
    ordered = np.sort(hardness)
    last = ordered[round(easy * len(ordered)) - 1]
    first = ordered[len(ordered) - round(hard * len(ordered))]
    if last >= first:
        raise BadDefinition(f"easy and hard rows overlap at difficulty {last:g}: choose smaller shares")
    part = np.where(hardness <= last, "train", np.where(hardness >= first, "ood_test", "ood_val")).astype("U8")
    near = np.flatnonzero(part == "train")
    draw_id_test(part, near, table["row_id"].to_numpy(), id_test, seed, "are easy")
    return Assignment(part=part, severity=hardness)
