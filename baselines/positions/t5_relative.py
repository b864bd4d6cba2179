"""T5's relative positions: a learned number for each head and bucket of distances, added to the scores.

Raffel et al., JMLR 2020 (arXiv:1910.10683), section 2.1: 32 buckets, shared by all layers of a stack. Half of a
direction's buckets hold one distance each, the others grow logarithmically up to 128, beyond which all fall in the
last. An encoder gives half of the buckets to each direction, a causal decoder all to the past.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from . import Position, compute_distances

BUCKETS, FARTHEST = 32, 128


def compute_bucket_limits(buckets: int) -> list[int]:
    """The least distance of each bucket but the first, for one direction's `buckets`."""
    exact = buckets // 2
    wide = buckets - exact
    # d reaches bucket exact + k where log(d / exact) / log(FARTHEST / exact) * wide >= k; integers avoid rounding.
    reached = [
        next(d for d in range(exact, FARTHEST + 1) if d**wide * exact**k >= FARTHEST**k * exact**wide)
        for k in range(wide)
    ]
    return [*range(1, exact), *reached]


class Encoding(Position):
    """weight: (K, heads, 32), normal at first with variance 1 / width."""

    limits: Tensor

    def __init__(self, settings: Mapping[str, Any], causal: bool) -> None:
        super().__init__(settings, causal)
        self.causal = causal
        self.weight = nn.Parameter(torch.randn(1, settings["heads"], BUCKETS) * settings["width"] ** -0.5)
        of_one = BUCKETS if causal else BUCKETS // 2
        self.register_buffer("limits", torch.tensor(compute_bucket_limits(of_one)), persistent=False)

    def buckets(self, distance: Tensor) -> Tensor:
        """The buckets of distances (key's column less query's), int64 of the same shape."""
        if self.causal:
            return torch.bucketize(-distance, self.limits, right=True)
        later = (distance > 0) * (BUCKETS // 2)
        return later + torch.bucketize(distance.abs(), self.limits, right=True)

    def bias(self, first: int, count: int) -> Tensor:
        buckets = self.buckets(compute_distances(first, count, self.weight.device))
        return self.weight.index_select(2, buckets.flatten()).view(*self.weight.shape[:2], *buckets.shape)
