"""Four Gaussian clusters in XOR position: the data model of Xu et al. 2024 (ICLR, arXiv 2310.02541), with a seeded
generator.

Rows of class 1 are centred at +mu_1 or -mu_1, rows of class 0 at +mu_2 or -mu_2, each with unit variance in every
direction; mu_1 and mu_2 are orthogonal and of equal norm. No linear classifier does better than chance.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.draws import UNIT, draw_below, draw_normal_units
from ...core.errors import BadDefinition
from ._rows import stack_blocks

_CLUSTERS = ("+mu1", "-mu1", "+mu2", "-mu2")


def rows(*, seed: str, count: int, dimension: int, shift: float) -> pa.Table:
    """`count` rows. Columns `x` (float32, `dimension` numbers), `side` (1 at +-mu_1, 0 at +-mu_2) and `cluster`.

    Each coordinate of mu_1 is `shift`; those of mu_2 alternate between `shift` and -`shift`. So both have the norm
    shift * sqrt(dimension), and are orthogonal if `dimension` is even. `shift` must be a multiple of 2^-16, which makes
    every value exact in float32.
    """
    steps = shift * UNIT
    if dimension < 2 or dimension % 2 or not 0 < steps < 2**20 or steps != round(steps):
        raise BadDefinition(
            f"xor_clusters: dimension = {dimension} must be even, shift = {shift} between 0 and 16 in steps of 2^-16"
        )
    cluster = draw_below(f"{seed}/cluster", np.arange(count, dtype=np.uint64), len(_CLUSTERS))
    alternating = np.where(np.arange(dimension) % 2, -1, 1)
    directions = np.stack([np.ones(dimension, np.int64), alternating])
    sign = np.where(cluster % 2, -1, 1)
    units = draw_normal_units(f"{seed}/noise", count * dimension).reshape(count, dimension)
    units += round(steps) * sign[:, None] * directions[cluster // 2]
    x, side = (units / UNIT).astype(np.float32), (cluster < 2).astype(np.int64)
    return stack_blocks([{"x": x, "side": side, "cluster": np.array(_CLUSTERS, object)[cluster]}])
