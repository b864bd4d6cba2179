"""Summaries of a score over groups (domains, writers, regions): the worst group, and quantiles over groups.

Benchmarks with few, large groups report the score of the worst group; benchmarks with many groups report a low quantile
over groups (the 10th percentile over users of Amazon-WILDS: Koh et al., ICML 2021). Every group counts once, regardless
of its size.

The scores are noisy, and the lowest of many noisy scores is biased below the lowest true score: the bias grows with the
number of groups, and shrinks with the number of rows per group. The worst group's own interval does not account for the
selection. Report these numbers together with the estimates of all groups, not instead of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Better = Literal["higher", "lower"]


def find_worst_group(scores: Mapping[str, float], better: Better = "higher") -> str:
    """Return the name of the group with the worst score, ties by name; `scores` are finite, one or more."""
    sign = 1 if better == "higher" else -1
    return min(scores, key=lambda name: (sign * scores[name], name))


def compute_group_quantiles(
    scores: NDArray[np.float64], shares: Sequence[float], better: Better = "higher"
) -> dict[str, float]:
    """Compute quantiles of the groups' scores from the worst end, by share: 0.1 is the worst decile, 0.5 the median.

    scores: (groups,), finite, one or more; shares: each in [0, 1]. Linear interpolation between groups, as NumPy's
    default (Hyndman and Fan 1996, type 7). Returns plain JSON with six decimals."""
    at = {share: share if better == "higher" else 1 - share for share in shares}
    return {f"{share:g}": round(float(np.quantile(scores, quantile)), 6) for share, quantile in at.items()}
