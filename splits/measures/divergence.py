"""The divergence of two sets of texts: of their atoms (such as words), and of their compounds (combinations of atoms).

Distribution-based compositionality assessment (Keysers et al. 2020, arXiv 1912.09713, section 2): the divergence of
train and test is 1 minus their Chernoff coefficient, with alpha 0.5 for atoms (symmetric) and alpha 0.1 for compounds
(it matters more whether a compound of the test occurs in training than how often).
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
"""A function from a text (or a tree, or another structure) to its units, each occurrence once."""


def chernoff_coefficient(p: ArrayLike, q: ArrayLike, alpha: float) -> float:
    """Compute the Chernoff coefficient sum_k p_k^alpha * q_k^(1 - alpha), from 0 (disjoint) to 1 (equal).

    `p` and `q`, both of shape (kinds,), are counts or probabilities of the same kinds; each is divided by its sum.
    Raises `FarshiftError` for other shapes, for a negative or NaN weight, a sum of 0, or an alpha outside (0, 1).
    """
    first, second = (np.asarray(weights, np.float64) for weights in (p, q))
    if first.ndim != 1 or first.shape != second.shape:
        raise FarshiftError(
            f"chernoff: p and q must be two lists of equal length, not of shapes {first.shape} and {second.shape}"
        )
    if not 0 < alpha < 1:
        raise FarshiftError(f"chernoff: alpha = {alpha}: must be between 0 and 1")
    for weights in (first, second):
        if not (weights >= 0).all() or not 0 < weights.sum() < np.inf:
            raise FarshiftError("chernoff: p and q must be counts or probabilities: none negative, not all zero")
    return float(np.sum((first / first.sum()) ** alpha * (second / second.sum()) ** (1 - alpha)))


@dataclass(frozen=True)
class Divergence:
    """`atoms` and `compounds`: divergences from 0 (equal) to 1 (disjoint). `unseen_atoms` and `unseen_compounds`:
    numbers of distinct units that occur in the test but not in training."""

    atoms: float
    compounds: float
    unseen_atoms: int
    unseen_compounds: int

    def __repr__(self) -> str:
        values = f"atoms={round(self.atoms, 3)}, compounds={round(self.compounds, 3)}"
        return f"Divergence({values}, unseen_atoms={self.unseen_atoms}, unseen_compounds={self.unseen_compounds})"


def measure_divergence(
    train: Iterable[Any],
    test: Iterable[Any],
    *,
    atoms: Parts = str.split,
    compounds: Parts = lambda text: pairwise(text.split()),
) -> Divergence:
    """Measure atom divergence (alpha 0.5) and compound divergence (alpha 0.1) of training and test texts.

    `atoms` and `compounds` are functions from a text to its units, by default its words and its bigrams. Other
    functions compare programs or trees in the same way. Raises `FarshiftError` if one side has no atom or no compound.
    """
    train, test = list(train), list(test)
    atom_divergence, unseen_atoms = _compare_parts(train, test, atoms, ATOMS, "atom")
    compound_divergence, unseen_compounds = _compare_parts(train, test, compounds, COMPOUNDS, "compound")
    return Divergence(atom_divergence, compound_divergence, unseen_atoms, unseen_compounds)


def _compare_parts(train: list[Any], test: list[Any], parts: Parts, alpha: float, what: str) -> tuple[float, int]:
    known, met = (Counter(part for text in texts for part in parts(text)) for texts in (train, test))
    for name, count in (("training", known), ("test", met)):
        if not count:
            raise FarshiftError(f"divergence: the {name} texts contain no {what}")
    kinds = list(known | met)
    coefficient = chernoff_coefficient([known[kind] for kind in kinds], [met[kind] for kind in kinds], alpha)
    return 1 - coefficient, len(met.keys() - known.keys())


@dataclass(frozen=True)
class Units:
    """The units of many rows, concatenated: unit `code[i]`, one of 0 .. kinds - 1, occurs in row `row[i]`.

    Both arrays have shape (occurrences,); rows ascend, and within a row units keep their order.
    """

    row: NDArray[np.int64]
    code: NDArray[np.int64]
    kinds: int
    rows: int

    def counts(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Count each unit in the chosen rows; `chosen` has shape (rows,), the result (kinds,)."""
        return np.bincount(self.code[chosen[self.row]], minlength=self.kinds)


def split_words(texts: pa.ChunkedArray) -> Units:
    """Split a text column at white space into words, numbered in the order in which they first appear."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = pc.utf8_split_whitespace(texts.cast(pa.large_string()).combine_chunks())
    flat, row = pc.list_flatten(lists), pc.list_parent_indices(lists)
    present = pc.not_equal(flat, "")
    code, kinds = number_values(flat.filter(present))
    return Units(row.filter(present).to_numpy().astype(np.int64), code, kinds, len(texts))


def find_runs(singles: Units, length: int) -> Units:
    """Return every n-gram of `length` words within a row as a unit."""
    import pyarrow as pa

    ends = singles.row[length - 1 :]
    starts = np.flatnonzero(singles.row[: len(ends)] == ends)
    code, kinds = singles.code[starts], singles.kinds
    for further in range(1, length):
        code, kinds = number_values(pa.array(code * singles.kinds + singles.code[starts + further]))
    return Units(singles.row[starts], code, kinds, singles.rows)


def number_values(values: pa.Array) -> tuple[NDArray[np.int64], int]:
    """Number distinct values 0, 1, 2 .. in the order in which they first appear; return the codes and the number of
    kinds.

    Hashing is several times faster than the sorting of `np.unique`.
    """
    coded = values.dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
