"""McNemar's exact test: two models' right and wrong answers to the same rows.

Only rows that one of them has right and the other wrong say anything: of n such rows the one had b, the other c. Were
the models equal, b would be binomial, n throws of a fair coin (McNemar, Psychometrika 1947). The exact two-sided p is 2
P(B <= min(b, c)), at most 1. Since b is a whole number it rejects less often than it says: at the 5 % level in at most
5 %. The mid-p, which counts the observed outcome half, comes near to 5 % (Fagerland, Lydersen and Laake, BMC Medical
Research Methodology 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log

import numpy as np


@dataclass(frozen=True)
class McNemar:
    """left, right: the rows that only the one, and only the other has right; p, exact and two-sided; mid_p."""

    left: int
    right: int
    p: float
    mid_p: float


def mcnemar(left: int, right: int) -> McNemar:
    """The exact test of `left` rows that only one model has right against `right` that only the other has."""
    fewer, rows = min(left, right), left + right
    if rows == 0:
        return McNemar(left, right, 1.0, 1.0)
    point, below = _fair_coin(fewer, rows)
    if left == right:
        return McNemar(left, right, 1.0, 1 - point / 2)
    return McNemar(left, right, min(1.0, 2 * below), min(1.0, 2 * below - point))


def _fair_coin(most: int, throws: int) -> tuple[float, float]:
    """P(B = most) and P(B <= most) of B heads in `throws` throws, for most <= throws / 2.

    Downwards from `most`, each term is the one above it times k / (throws - k + 1); after some tens of standard
    deviations nothing is left to add."""
    point = exp(lgamma(throws + 1) - lgamma(most + 1) - lgamma(throws - most + 1) - throws * log(2))
    k = np.arange(most, max(most - _terms(throws), 0), -1, dtype=np.float64)
    return point, point * (1 + float(np.cumprod(k / (throws - k + 1)).sum()))


def _terms(throws: int) -> int:
    return 200 + int(20 * throws**0.5)
