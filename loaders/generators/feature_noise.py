"""Weak and strong features with noise, after the data model of Lu, Wu, Yang and Zou, "Benign Oscillation of Stochastic
Gradient Descent with Large Learning Rates" (ICLR 2024, arXiv 2310.17074), with a seeded generator.

As its abstract states: a weak feature of small norm is in every row, a strong one of larger norm in a certain share of
the rows only, and there is noise. Both point to the class y = +-1. A network that fits the strong feature first has
little left to learn the weak one from; on rows without the strong feature it then fails. A row has two patches: y u,
and noise, to which a strong row adds y v. u and v are axes, and the noise is normal and orthogonal to both. (Layout
and sizes are ours.)
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.draws import UNIT, draw_normal_units, draw_uniform
from ...core.errors import BadDefinition
from ._rows import make_counters, stack_blocks


def rows(
    *, dimension: int, weak: float, strong: float, noise: float, regimes: list[dict[str, str | float]], seed: str
) -> pa.Table:
    """Rows of some regimes, each `{ name, rows, share }`, `share` being the probability of the strong feature.

    weak, strong: the norms of the features. noise: the expected norm of a row's noise, about. Columns: `patches`
    (float32, [2, dimension]), `label` (0 or 1), `features` (`weak` or `strong and weak`) and `regime`."""
    if dimension < 3:
        raise BadDefinition(f"feature_noise: dimension = {dimension}: use 3 or more, for two features and noise")
    blocks = []
    for regime in regimes:
        name, count = str(regime["name"]), int(regime["rows"])
        label = np.arange(count) % 2
        sign = np.where(label, 1.0, -1.0)
        has = draw_uniform(f"{seed}/{name}/strong", make_counters(count)) < float(regime["share"])
        drawn = draw_normal_units(f"{seed}/{name}/noise", count * dimension).reshape(count, dimension)
        row = np.zeros((count, 2, dimension))
        row[:, 1] = drawn * (noise / UNIT / np.sqrt(dimension))
        row[:, 0, 0], row[:, 1, 0], row[:, 1, 1] = weak * sign, 0.0, strong * sign * has
        features = np.where(has, "strong and weak", "weak").astype(object)
        blocks.append({"patches": row.astype(np.float32), "label": label, "features": features, "regime": name})
    return stack_blocks(blocks)
