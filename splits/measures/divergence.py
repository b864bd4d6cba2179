"""How far two sets of texts lie apart: in what they are made of (atoms), and in how it is combined (compounds).

Distribution-based compositionality assessment (Keysers et al. 2020, arXiv 1912.09713, section 2): the divergence of
train and test is one less their Chernoff coefficient, with alpha 0.5 for atoms (symmetric) and alpha 0.1 for compounds
(what matters is that training shows a compound of the test at all, less how often).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.errors import FarshiftError

if TYPE_CHECKING:
    import pyarrow as pa

ATOMS, COMPOUNDS = 0.5, 0.1
"""The alphas of Keysers et al. (2020) for atoms and for compounds."""

Parts = Callable[[Any], Iterable[Hashable]]
"""What a text (or a tree, or whatever is taken apart) consists of, each occurrence once."""


def chernoff_coefficient(p: ArrayLike, q: ArrayLike, alpha: float) -> float:
    """The Chernoff coefficient sum_k p_k^alpha * q_k^(1 - alpha), from 0 (disjoint) to 1 (equal).

    `p` and `q`, both of shape (kinds,), are counts or probabilities of the same kinds; each is divided by its sum.
    Raises `FarshiftError` for other shapes, for a negative or NaN weight, a sum of 0, or an alpha outside (0, 1).
    """
    first, second = (np.asarray(weights, np.float64) for weights in (p, q))
    if first.ndim != 1 or first.shape != second.shape:
        raise FarshiftError(
            f"chernoff: p and q must be two lists of equal length, not of shapes {first.shape} and {second.shape}"
        )
    if not 0 < alpha < 1:
        raise FarshiftError(f"chernoff: alpha = {alpha}: it lies between 0 and 1")
    for weights in (first, second):
        if not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
            raise FarshiftError("chernoff: p and q must be counts or probabilities: none negative, not all zero")
    return float(np.sum((first / first.sum()) ** alpha * (second / second.sum()) ** (1 - alpha)))


@dataclass(frozen=True)
class Divergence:
    """`atoms` and `compounds`: divergences from 0 (equal) to 1 (disjoint). `unseen_atoms` and `unseen_compounds`: how
    many different ones stand in the test and nowhere in training."""

    atoms: float
    compounds: float
    unseen_atoms: int
    unseen_compounds: int


def measure_divergence(
    train: Iterable[Any],
    test: Iterable[Any],
    *,
    atoms: Parts = str.split,
    compounds: Parts = lambda text: pairwise(text.split()),
) -> Divergence:
    """Atom divergence (alpha 0.5) and compound divergence (alpha 0.1) of training and test texts.

    `atoms` and `compounds` name what a text consists of; by default its words, and its pairs of neighbouring words.
    With functions of their own, programs or trees are compared in the same way. Raises `FarshiftError` where one side
    has no atom, or no compound, at all.
    """
    train, test = list(train), list(test)
    atom_divergence, unseen_atoms = _compare_parts(train, test, atoms, ATOMS, "atom")
    compound_divergence, unseen_compounds = _compare_parts(train, test, compounds, COMPOUNDS, "compound")
    return Divergence(atom_divergence, compound_divergence, unseen_atoms, unseen_compounds)


def _compare_parts(train: list[Any], test: list[Any], parts: Parts, alpha: float, what: str) -> tuple[float, int]:
    known, met = (Counter(part for text in texts for part in parts(text)) for texts in (train, test))
    for name, count in (("training", known), ("test", met)):
        if not count:
            raise FarshiftError(f"divergence: the {name} texts hold no {what}")
    kinds = list(known | met)
    coefficient = chernoff_coefficient([known[kind] for kind in kinds], [met[kind] for kind in kinds], alpha)
    return 1 - coefficient, len(met.keys() - known.keys())


@dataclass(frozen=True)
class Units:
    """What many rows consist of, end to end: unit `code[i]`, one of 0 .. kinds - 1, stands in row `row[i]`.

    Both arrays have shape (occurrences,); rows ascend, and within a row units keep their order.
    """

    row: NDArray[np.int64]
    code: NDArray[np.int64]
    kinds: int
    rows: int

    def counts(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How often each unit stands in the chosen rows; `chosen` has shape (rows,), the answer (kinds,)."""
        return np.bincount(self.code[chosen[self.row]], minlength=self.kinds)


def split_words(texts: pa.ChunkedArray) -> Units:
    """The words (between white space) of a text column, numbered in the order in which they first appear."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = pc.utf8_split_whitespace(texts.cast(pa.large_string()).combine_chunks())
    flat, row = pc.list_flatten(lists), pc.list_parent_indices(lists)
    present = pc.not_equal(flat, "")
    code, kinds = number_values(flat.filter(present))
    return Units(row.filter(present).to_numpy().astype(np.int64), code, kinds, len(texts))


def find_runs(singles: Units, length: int) -> Units:
    """Every run of `length` neighbouring words of one row, as a unit of its own."""
    import pyarrow as pa

    ends = singles.row[length - 1 :]
    starts = np.flatnonzero(singles.row[: len(ends)] == ends)
    code, kinds = singles.code[starts], singles.kinds
    for further in range(1, length):
        code, kinds = number_values(pa.array(code * singles.kinds + singles.code[starts + further]))
    return Units(singles.row[starts], code, kinds, singles.rows)


def number_values(values: pa.Array) -> tuple[NDArray[np.int64], int]:
    """A number 0, 1, 2 .. for each different value, in the order in which they first appear, and how many there are.

    By hashing: several times faster than by sorting, as `np.unique` does it.
    """
    coded = values.dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
