"""Which entries are another one over again: the same answers, or nearly, whoever sends them.

Honest models agree too. On easy rows nearly all of their answers are the same, and of wrong labels they make the same
errors. So agreement by itself says nothing, and two yardsticks stand beside the share of rows d(y, x) on which a run y
of the later entry answers otherwise than a run x of the earlier one:

    d(y, x) <= max( HALF  * w - sqrt(w / n) / 2,  w the median of d(x', x) over the earlier entry's other runs x',
                    TENTH * the share of rows that x or y has wrong )

The first: trained anew, the same model differs from itself by this much (Geirhos, Meding and Wichmann, NeurIPS 2020,
compare models in like manner with their own kind); who is twice as near did not train. Where few of the n rows differ
their number varies much: half of a count's standard deviation is taken off. The second is for models whose
seeds agree: who shares nine tenths of all errors has, whatever it is, the same score within a tenth of its errors.
Where few rows are wrong a tenth of them is less than one row, and only equal answers are near.

A later entry is near where most of its runs are, each to any run of the earlier one: seeds may be dealt out anew. For
numbers d is the root mean square difference, from which nothing is taken off, and the share of errors is the root mean
square error of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

HALF, TENTH = 0.5, 0.1
_ROUNDING, _SLACK = 1e-9, 1e-6


@dataclass(frozen=True)
class Given:
    """What an entry answered on rows that all entries have in one order. answers (seeds, rows): codes of classes or
    texts (whole numbers), equal where answers are; or numbers (floats). wrong: for codes (seeds, rows), whether each is
    wrong; for numbers (seeds,), the root mean square error of each seed."""

    answers: NDArray[np.integer[Any]] | NDArray[np.float64]
    wrong: NDArray[np.bool_] | NDArray[np.float64]

    @property
    def numbers(self) -> bool:
        return self.answers.dtype.kind == "f"

    @cached_property
    def bits(self) -> NDArray[np.uint64]:
        """`wrong` of codes in one bit a row, (seeds, words)."""
        packed = np.packbits(self.wrong.astype(bool), axis=1)
        return np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8))).view(np.uint64)

    @cached_property
    def within(self) -> NDArray[np.float64]:
        """How far the typical other run of the entry lies from each of its runs, (seeds,); 0 for a single one."""
        runs = self.answers
        if len(runs) < 2:
            return np.zeros(len(runs))
        between = np.array([[_rms(x - y) if self.numbers else float((x != y).mean()) for y in runs] for x in runs])
        return np.array([np.median(np.delete(line, k)) for k, line in enumerate(between)])

    @property
    def reach(self) -> NDArray[np.float64]:
        """How near to each of its runs another entry is a copy, by the first yardstick, (seeds,)."""
        taken_off = 0.0 if self.numbers else np.sqrt(self.within / self.answers.shape[1]) / 2
        return HALF * self.within - taken_off


class NearPairs:
    """Which entries are near which earlier ones, found out once for each two. Entries have names here, which stand for
    what they answered; memory: 2 bits for each two, whose answers it does not keep."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self._compared: dict[str, int] = {}  # a set of places, as the bits of a number
        self._near: dict[str, int] = {}

    def copies(self, names: Sequence[str], entries: Sequence[Given], teams: Sequence[str]) -> list[int | None]:
        """For each entry, in the order in which they came, the first earlier one of another team that it is a near copy
        of; None for what is nobody's. Copies are compared with what is no copy itself."""
        for name in names:
            self._place.setdefault(name, len(self._place))
        bits = [1 << self._place[name] for name in names]
        found: list[int | None] = []
        before = 0
        for later, name in enumerate(names):
            if fresh := before & ~self._compared.get(name, 0):
                there = [k for k in range(later) if bits[k] & fresh]
                near_ones = [there[k] for k in _near_of([entries[k] for k in there], entries[later])]
                self._near[name] = self._near.get(name, 0) | sum(bits[k] for k in near_ones)
                self._compared[name] = self._compared.get(name, 0) | fresh
            of = self._near.get(name, 0) & before
            earlier = (k for k in range(later) if of & bits[k] and found[k] is None and teams[k] != teams[later])
            found.append(next(earlier, None) if of else None)
            before |= bits[later]
        return found


def copies(entries: Sequence[Given], teams: Sequence[str]) -> list[int | None]:
    """`NearPairs.copies` of entries without names."""
    return NearPairs().copies([str(k) for k in range(len(entries))], entries, teams)


def _near_of(earlier: Sequence[Given], later: Given) -> list[int]:
    """The places of those that the later entry is near to. Codes are first compared by their errors, all at once: where
    right and wrong do not agree well enough, answers need no look."""
    if later.numbers:
        return [k for k, one in enumerate(earlier) if near(one, later)]
    rows, columns = later.answers.shape[1], len(later.answers)
    alike = [k for k, one in enumerate(earlier) if not one.numbers and one.answers.shape[1] == rows and rows]
    if not alike:
        return []
    runs = np.concatenate([earlier[k].bits for k in alike])
    owner = np.repeat(np.arange(len(alike)), [len(earlier[k].answers) for k in alike])
    reach = np.concatenate([earlier[k].reach for k in alike])[:, None]
    alone, other = (np.bitwise_count(bits).sum(axis=1, dtype=np.int64) for bits in (runs, later.bits))
    both = np.stack([np.bitwise_count(runs & bits).sum(axis=1, dtype=np.int64) for bits in later.bits], axis=1)
    errors = (alone[:, None] + other - both) / rows
    may_be = errors - both / rows <= np.maximum(reach, TENTH * errors) + _SLACK
    met = np.zeros((len(alike), columns), bool)
    np.logical_or.at(met, owner, may_be)
    able = np.flatnonzero(2 * np.count_nonzero(met, axis=1) > columns)
    return [alike[k] for k in able if near(earlier[alike[k]], later)]


def near(earlier: Given, later: Given) -> bool:
    """Whether the later entry is a near copy of the earlier one; False for answers of other rows or another kind."""
    if earlier.numbers != later.numbers or earlier.answers.shape[1] != later.answers.shape[1]:
        return False
    if not later.answers.shape[1]:
        return False
    distances, errors = (_of_numbers if earlier.numbers else _of_codes)(earlier, later)
    limits = np.maximum(earlier.reach[:, None], TENTH * errors)
    alike = np.count_nonzero((distances <= limits + _ROUNDING * errors).any(axis=0))
    return bool(2 * alike > len(later.answers))


def _of_codes(earlier: Given, later: Given) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each run of one entry and each of the other, (seeds, seeds): the share of rows with other answers, and of rows
    that either has wrong. Rows are compared one by one only where right and wrong agree well enough."""
    rows = earlier.answers.shape[1]
    first, second = (one.wrong.astype(np.float32) for one in (earlier, later))
    both = (first @ second.T).astype(np.float64) / rows
    alone, other = first.mean(axis=1, dtype=np.float64), second.mean(axis=1, dtype=np.float64)
    errors = alone[:, None] + other[None, :] - both
    distances = errors - both  # where one is right and the other wrong they differ; they may differ elsewhere
    limits = np.maximum(earlier.reach[:, None], TENTH * errors)
    for x, y in np.argwhere(distances <= limits + _SLACK):
        distances[x, y] = np.count_nonzero(earlier.answers[x] != later.answers[y]) / rows
    return distances, errors


def _of_numbers(earlier: Given, later: Given) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The root mean square differences of the runs, and the root mean square errors."""
    distances = np.array([[_rms(x - y) for y in later.answers] for x in earlier.answers])
    return distances, np.sqrt((earlier.wrong[:, None] ** 2 + later.wrong[None, :] ** 2) / 2)


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))
