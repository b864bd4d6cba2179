"""The search for splits of maximum compound divergence.

MCD (Keysers et al. 2020, arXiv 1912.09713, section 2): maximise the compound divergence of train and test while their
atom divergence stays bounded. TMCD (Shaw et al. 2021, arXiv 2010.12725, section 4.1): every atom of the test occurs in
training, with no other bound on atoms.

Rows are exchanged between train and test, many at once as long as that helps, then fewer, finally one for one. The
effect of each single row is exact (as in Shaw et al.'s exchanges, here for all rows in one pass); a batch is accepted
only if the recomputed divergences of the resulting split improve. The result is a local optimum, and a function of the
rows, their order and the seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from .divergence import ATOMS, COMPOUNDS, Units

_PRESSURES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, np.inf)
"""The weights of atom divergence against compound divergence when rows are ranked for an exchange."""

_LEAST_GAIN = 1e-9

_COMPOUNDS_TRIED = 64

Numbers = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Split:
    """`test`, shape (rows,), marks the test rows; `atoms` and `compounds` are the divergences of the split."""

    test: Mask
    atoms: float
    compounds: float


def search_split(
    atoms: Units, compounds: Units, test_rows: int, *, seed: str, atom_bound: float | None = None, starts: int = 8
) -> Split:
    """Search the split with `test_rows` test rows and the greatest compound divergence, every atom of it in training.

    `atom_bound` limits the atom divergence (Keysers et al. use 0.02; None: no limit). `starts` searches begin at the
    most divergent of the random tests, some of which consist of the rows that share a compound; the best result is
    returned. Raises `BadDefinition` for a bound outside 0 .. 1, if training cannot spare that many rows, if rows have
    no compound, and if no split within the bound was found.
    """
    if not 0 < test_rows < atoms.rows:
        raise BadDefinition(f"test_rows = {test_rows}: between 1 and {atoms.rows - 1}, there are {atoms.rows} rows")
    if atom_bound is not None and not 0 <= atom_bound <= 1:
        raise BadDefinition(f"atom_bound = {atom_bound}: a divergence, from 0 to 1")
    if not len(compounds.code):
        raise BadDefinition("no row contains a compound (two neighbouring words): their divergence cannot be maximised")
    measures = _Measure(atoms, ATOMS), _Measure(compounds, COMPOUNDS)
    bound = 1.0 if atom_bound is None else atom_bound
    begun = [_measure_split(*measures, test) for test in _draw_tests(atoms, compounds, test_rows, seed)]
    begun.sort(key=lambda split: split.compounds - split.atoms, reverse=True)
    ends = [_improve_split(*measures, split, bound) for split in begun[:starts]]
    best = max(ends, key=lambda split: _compute_merit(split, bound))
    if best.atoms > bound:
        raise BadDefinition(
            f"no split with {test_rows} test rows has an atom divergence within {bound} (the least found: "
            f"{best.atoms:.4f}): raise atom_bound, or change the number of test rows"
        )
    return best


def _draw_tests(atoms: Units, compounds: Units, test_rows: int, seed: str) -> list[Mask]:
    """Yield random tests whose atoms all occur in training: one of any rows, then for each of the most frequent
    compounds one of the rows that have it and, if they are too few, others."""
    drawn = draw_permutation(seed, np.arange(atoms.rows, dtype=np.uint64))
    orders = [drawn]
    counts = np.bincount(compounds.code, minlength=compounds.kinds)
    for kind in np.argsort(-counts, kind="stable")[:_COMPOUNDS_TRIED]:
        holds = _make_mask(atoms.rows, compounds.row[compounds.code == kind])
        orders.append(drawn[np.argsort(holds[drawn], kind="stable")])
    spare = [_select_spare_rows(atoms, order) for order in orders]
    most = max(map(len, spare))
    if most < test_rows:
        raise BadDefinition(
            f"test_rows = {test_rows}, but only {most} of {atoms.rows} rows can be spared: training needs the others "
            "to cover every atom"
        )
    return [_make_mask(atoms.rows, rows[len(rows) - test_rows :]) for rows in spare if len(rows) >= test_rows]


def _select_spare_rows(atoms: Units, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows that training can spare, in order: all but the first row of each atom."""
    rank = np.empty(atoms.rows, np.int64)
    rank[order] = np.arange(atoms.rows)
    first = np.full(atoms.kinds, atoms.rows, np.int64)
    np.minimum.at(first, atoms.code, rank[atoms.row])
    return order[~_make_mask(atoms.rows, first)]


def _make_mask(rows: int, chosen: NDArray[np.int64]) -> Mask:
    mask = np.zeros(rows, bool)
    mask[chosen] = True
    return mask


def _measure_split(atoms: _Measure, compounds: _Measure, test: Mask) -> Split:
    return Split(test, atoms.divergence(test), compounds.divergence(test))


class _Measure:
    """The divergence of one sort of unit between train and test at one alpha, and its change when rows move.

    With x and y a unit's counts in train and test, and X and Y their sums, the Chernoff coefficient is
    sum(x^alpha * y^(1 - alpha)) / (X^alpha * Y^(1 - alpha)); a row's move changes only the terms of its own units.
    """

    def __init__(self, units: Units, alpha: float) -> None:
        keys, amount = np.unique(units.row * units.kinds + units.code, return_counts=True)
        self.units = Units(keys // units.kinds, keys % units.kinds, units.kinds, units.rows)
        self.amount = amount.astype(np.int64)
        self.size = np.bincount(self.units.row, self.amount, units.rows).astype(np.int64)
        # Counts are integers: look their powers up.
        counts = np.arange(self.size.sum() + 1, dtype=np.float64)
        self._train_power, self._test_power = counts**alpha, counts ** (1 - alpha)

    def counts(self, chosen: Mask) -> NDArray[np.int64]:
        """Count each unit in the chosen rows, shape (kinds,)."""
        here = chosen[self.units.row]
        return np.bincount(self.units.code[here], self.amount[here], self.units.kinds).astype(np.int64)

    def divergence(self, test: Mask) -> float:
        train, met = self.counts(~test), self.counts(test)
        return float(1 - self._terms(train, met).sum() / self._terms(train.sum(), met.sum()))

    def gains(self, test: Mask) -> Numbers:
        """Return the change of the divergence when each single row changes sides, shape (rows,)."""
        train, met = self.counts(~test), self.counts(test)
        code, row = self.units.code, self.units.row
        moved = np.where(test[row], -self.amount, self.amount)
        change = self._terms(train[code] - moved, met[code] + moved) - self._terms(train, met)[code]
        summed = self._terms(train, met).sum()
        total = summed + np.bincount(row, change, self.units.rows)
        size = np.where(test, -self.size, self.size)
        scale = self._terms(train.sum() - size, met.sum() + size)
        coefficient = np.divide(total, scale, out=np.ones_like(total), where=scale > 0)
        return np.asarray(summed / self._terms(train.sum(), met.sum()) - coefficient)

    def _terms(self, train: NDArray[np.int64], test: NDArray[np.int64]) -> Numbers:
        return np.asarray(self._train_power[train] * self._test_power[test])


def _improve_split(atoms: _Measure, compounds: _Measure, now: Split, bound: float) -> Split:
    batch = max(1, int(min(now.test.sum(), (~now.test).sum())) // 4)
    while batch:
        tries = [
            _measure_split(atoms, compounds, mask) for mask in _propose_exchanges(atoms, compounds, now.test, batch)
        ]
        best = max(tries, key=lambda split: _compute_merit(split, bound), default=now)
        if _compute_merit(best, bound) > _compute_merit(now, bound) + _LEAST_GAIN:
            now = best
        else:
            batch //= 2
    return now


def _compute_merit(split: Split, bound: float) -> float:
    """Return the compound divergence within the bound; beyond it the negative excess, so that the search returns
    first."""
    return split.compounds if split.atoms <= bound else bound - split.atoms


def _propose_exchanges(atoms: _Measure, compounds: _Measure, test: Mask, batch: int) -> Iterator[Mask]:
    """Yield splits that exchange the `batch` most promising rows of each side, at several weights of the atoms."""
    far, near = compounds.gains(test), atoms.gains(test)
    rare = np.bincount(atoms.units.code[~test[atoms.units.row]], minlength=atoms.units.kinds)
    seen: set[bytes] = set()
    for pressure in _PRESSURES:
        merit = -near if np.isinf(pressure) else far - pressure * near
        out, into = _select_best(merit, test, batch), _select_best(merit, ~test, batch)
        into = _select_removable(atoms.units, rare, into)
        out = out[: len(into)]
        changed = test.copy()
        changed[out], changed[into] = False, True
        if len(into) and changed.tobytes() not in seen:
            seen.add(changed.tobytes())
            yield changed


def _select_best(merit: Numbers, among: Mask, count: int) -> NDArray[np.int64]:
    """Return the `count` candidates of the greatest merit, best first; ties in their order."""
    rows = np.flatnonzero(among)
    return rows[np.argsort(-merit[rows], kind="stable")[:count]]


def _select_removable(atoms: Units, in_train: NDArray[np.int64], leaving: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of `leaving` that may leave training together: each atom still occurs in the remaining rows.

    `in_train`, shape (kinds,), counts the training rows of each atom.
    """
    mask = _make_mask(atoms.rows, leaving)
    here = mask[atoms.row]
    left = in_train - np.bincount(atoms.code[here], minlength=atoms.kinds)
    lost = here & ((left <= 0) & (in_train > 0))[atoms.code]
    mask[atoms.row[lost]] = False
    return leaving[mask[leaving]]
