"""Compositional: all single facts occur in training, some inferences from two facts do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_names, read_numeric_column, read_text_column

if TYPE_CHECKING:
    import pyarrow as pa

Flags = NDArray[np.bool_]


def inferred(
    table: pa.Table,
    *,
    hops: str,
    facts: str,
    phi: float,
    id_test: int,
    ood_test: int,
    seed: str,
    label: str = "",
    wrong: float = 0.0,
    wrong_words: list[int] | None = None,
) -> Assignment:
    """Train on every fact, and on `phi` inferences for each in-distribution fact; test on inferences from facts that
    occur in no training inference (Wang et al. 2024, arXiv 2405.15071).

    `hops` is 1 for a fact and 2 for an inference; `facts` is "id" or "ood". Drawn by `seed`: `id_test` of the
    in-distribution inferences, then round(phi x in-distribution facts) others, which train (the rest is dropped), and
    at most `ood_test` of the out-of-distribution inferences. The group is the type of a row; training inferences may
    use a "fact in use", but never a "fact set apart".

    Wrong steps, as Yao et al. 2025 (arXiv 2502.04667) train on: in a share `wrong` of the training inferences, each of
    the words `wrong_words` of `label` is another last word of a label, drawn uniformly (there from all, the true one
    included). Rows that are wrong at one rate are wrong at a higher one too.

    Parameters:
        hops: the field that is 1 for a fact and 2 for an inference.
        facts: the field that is `id` or `ood` for a row's facts.
        phi: the number of training inferences for each in-distribution fact.
        id_test: the number of in-distribution inferences in `id_test`.
        ood_test: the largest number of out-of-distribution inferences in `ood_test`.
        label: the field that has wrong steps; none by default.
        wrong: the share of training inferences with wrong steps, from 0 to 1.
        wrong_words: the positions of the words of the label that are wrong in them, counted from 0.
    """
    inference = read_numeric_column(table, hops) > 1
    apart = read_names(table, facts) == "ood"
    ids = table["row_id"].to_numpy()
    train_count = round(phi * int((~inference & ~apart).sum()))
    inside = _draw_positions(inference & ~apart, f"{seed}/inferred", ids)
    outside = _draw_positions(inference & apart, f"{seed}/ood_test", ids)
    if id_test + train_count > len(inside):
        raise BadDefinition(
            f"phi = {phi} needs {train_count} inferences beside {id_test} of id_test; there are {len(inside)}: "
            "lower phi"
        )
    part = np.where(inference, "", "train").astype("U8")
    part[inside[:id_test]] = "id_test"
    part[inside[id_test : id_test + train_count]] = "train"
    part[outside[:ood_test]] = "ood_test"
    group = np.where(
        inference,
        np.where(apart, "inference from facts set apart", "inference from facts in use"),
        np.where(apart, "fact set apart", "fact in use"),
    )
    if not label:
        return Assignment(part=part, group=group)
    if not (0 <= wrong <= 1 and wrong_words):
        raise BadDefinition(
            f"wrong = {wrong}, wrong_words = {wrong_words}: use a share from 0 to 1, and some positions"
        )
    changed = inside[id_test : id_test + train_count]
    changed = changed[draw_permutation(f"{seed}/wrong", ids[changed])[: round(wrong * train_count)]]
    return Assignment(part=part, group=group, label=_replace_words(table, label, changed, wrong_words, seed))


def _replace_words(
    table: pa.Table, label: str, changed: NDArray[np.int64], words: list[int], seed: str
) -> np.ma.MaskedArray[Any, Any]:
    """Return a label override: in the rows `changed`, each of these words is another last word of the labels."""
    texts = np.array(read_text_column(table, label).to_pylist(), object)
    choices = sorted({text.split()[-1] for text in texts})
    numbers = {word: index for index, word in enumerate(choices)}
    ids = table["row_id"].to_numpy()[changed]
    moves = [1 + draw_below(f"{seed}/wrong word {word}", ids, len(choices) - 1) for word in words]
    for row, *offsets in zip(changed.tolist(), *moves, strict=True):
        steps = texts[row].split()
        for word, offset in zip(words, offsets, strict=True):
            steps[word] = choices[(numbers[steps[word]] + int(offset)) % len(choices)]
        texts[row] = " ".join(steps)
    unchanged = np.ones(len(texts), bool)
    unchanged[changed] = False
    return np.ma.MaskedArray(texts, mask=unchanged)


def coverage(
    table: pa.Table,
    *,
    first: list[str],
    second: list[str],
    known: float,
    train_rows: int,
    test_rows: int,
    seed: str,
) -> Assignment:
    """Split two-hop rows by which of their hops occur in training (Chang et al. 2025, arXiv 2505.20278).

    `first` and `second` name the arguments of the two hops. A share `known` of the distinct arguments of each hop is
    drawn; `train_rows` of the rows with two known hops train. A hop is seen if a training row has it. `id_test`:
    `test_rows` new rows with both hops seen; `ood_test`: as many rows of each of the three other types, from the rows
    with an unknown hop. Severity counts the unseen hops; the group names the type.

    Parameters:
        first: the fields with the arguments of the first hop.
        second: the fields with the arguments of the second hop.
        known: the share of the arguments of each hop that are known, from 0 to 1.
        train_rows: the number of training rows.
        test_rows: the number of test rows of each type.
    """
    ids = table["row_id"].to_numpy()
    hops = [_encode_tuples(table, fields) for fields in (first, second)]
    inside = np.ones(table.num_rows, bool)
    for name, codes in zip(("first", "second"), hops, strict=True):
        inside &= _draw_known(codes, known, f"{seed}/{name}")[codes]
    train = _draw_positions(inside, f"{seed}/train", ids)[:train_rows]
    if len(train) < train_rows:
        raise BadDefinition(f"train_rows = {train_rows}, but only {len(train)} rows have both hops among the known")
    part = np.full(table.num_rows, "", dtype="U8")
    part[train] = "train"
    seen = [np.isin(codes, codes[train]) for codes in hops]
    group = np.where(
        seen[0],
        np.where(seen[1], "both hops seen", "second hop unseen"),
        np.where(seen[1], "first hop unseen", "neither hop seen"),
    )
    fresh = part == ""
    for kind in sorted(set(group.tolist())):
        here = fresh & (group == kind)
        name = "id_test" if kind == "both hops seen" else "ood_test"
        drawn = _draw_positions(here & (inside == (name == "id_test")), f"{seed}/{kind}", ids)[:test_rows]
        if len(drawn) < test_rows:
            raise BadDefinition(f"test_rows = {test_rows}, but only {len(drawn)} rows are of the type {kind!r}")
        part[drawn] = name
    return Assignment(part=part, severity=2 - seen[0].astype(np.int64) - seen[1], group=group)


def _draw_positions(mask: Flags, stream: str, ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the positions where `mask` is true, in the order of their draws."""
    places = np.flatnonzero(mask)
    return places[draw_permutation(stream, ids[places])]


def _encode_tuples(table: pa.Table, fields: list[str]) -> NDArray[np.int64]:
    """Number the distinct tuples of the fields' values 0, 1, 2 .. in ascending order."""
    values = np.stack([read_numeric_column(table, field) for field in fields], axis=1)
    _, codes = np.unique(values, axis=0, return_inverse=True)
    return codes.ravel()


def _draw_known(codes: NDArray[np.int64], share: float, stream: str) -> Flags:
    """Return for each code whether it is in the drawn share."""
    count = int(codes.max()) + 1
    known = np.zeros(count, bool)
    known[draw_permutation(stream, np.arange(count, dtype=np.uint64))[: round(share * count)]] = True
    return known
