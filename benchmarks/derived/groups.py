"""How unequal is a score over groups (domains, writers, regions)? The worst group, and quantiles over groups.

The score of the worst group is the custom of benchmarks with few, large groups; a low quantile over groups that of
benchmarks with many (the 10th percentile over users of Amazon-WILDS: Koh et al., ICML 2021). Every group counts once,
whatever its size.

The scores are themselves noisy, and the lowest of many noisy scores lies below the lowest true one: the more so, the
more groups there are and the fewer rows each has. The worst group's own interval knows nothing of its having been
picked. So these numbers belong beside the estimates of all groups, not in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Better = Literal["higher", "lower"]


def find_worst_group(scores: Mapping[str, float], better: Better = "higher") -> str:
    """The name of the group with the worst score, the first by name of equals; `scores` are finite, one or more."""
    sign = 1 if better == "higher" else -1
    return min(scores, key=lambda name: (sign * scores[name], name))


def compute_group_quantiles(
    scores: NDArray[np.float64], shares: Sequence[float], better: Better = "higher"
) -> dict[str, float]:
    """The score that a share of the groups does not better, by share, from the worst end: 0.1 is the worst decile, 0.5
    the median. Plain JSON; six decimals.

    scores: (groups,), finite, one or more; shares: each in [0, 1]. Between two groups by linear interpolation, as
    NumPy's default (Hyndman and Fan 1996, type 7)."""
    at = {share: share if better == "higher" else 1 - share for share in shares}
    return {f"{share:g}": round(float(np.quantile(scores, quantile)), 6) for share, quantile in at.items()}
