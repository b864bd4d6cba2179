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

import numpy as np
from numpy.typing import NDArray

HALF, TENTH = 0.5, 0.1
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Given:
    """What an entry answered on rows that all entries have in one order. answers (seeds, rows): codes of classes or
    texts (whole numbers), equal where answers are; or numbers (floats). wrong: for codes (seeds, rows), whether each is
    wrong; for numbers (seeds,), the root mean square error of each seed."""

    answers: NDArray[np.int64] | NDArray[np.float64]
    wrong: NDArray[np.bool_] | NDArray[np.float64]

    @property
    def numbers(self) -> bool:
        return self.answers.dtype.kind == "f"

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


def copies(entries: Sequence[Given], teams: Sequence[str]) -> list[int | None]:
    """For each entry, in the order in which they came, the first earlier one of another team that it is a near copy of;
    None for what is nobody's. Copies are compared with what is no copy itself."""
    found: list[int | None] = []
    for later, one in enumerate(entries):
        earlier = (k for k in range(later) if found[k] is None and teams[k] != teams[later])
        found.append(next((k for k in earlier if near(entries[k], one)), None))
    return found


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
    for x, y in np.argwhere(distances <= limits + 1e-6):
        distances[x, y] = np.count_nonzero(earlier.answers[x] != later.answers[y]) / rows
    return distances, errors


def _of_numbers(earlier: Given, later: Given) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The root mean square differences of the runs, and the root mean square errors."""
    distances = np.array([[_rms(x - y) for y in later.answers] for x in earlier.answers])
    return distances, np.sqrt((earlier.wrong[:, None] ** 2 + later.wrong[None, :] ** 2) / 2)


def _rms(values: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(values**2)))
