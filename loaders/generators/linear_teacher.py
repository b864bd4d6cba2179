"""A linear teacher with noise: the setting of Advani, Saxe and Sompolinsky, "High-dimensional dynamics of
generalization error in neural networks" (arXiv 1710.03667, Neural Networks 2020), with a seeded generator.

Inputs x are normal of variance 1 in each of d coordinates; y = w . x + noise, with a random w of norm 1. A student that
starts at w = 0 and follows the gradient of its squared error on n rows has after time t, averaged over teachers and
noise, the excess error

    E(t) = mean over i of  exp(-2 s_i t) + v d / n (1 - exp(-s_i t))^2 / s_i,

s_i being the eigenvalues of X'X / n, and v the noise's variance (the second term of s_i = 0 is 0). For large n and d
they follow the Marchenko-Pastur law, of n / d alone. Learning too long hurts most where n = d. (The paper's inputs have
variance 1 / d, and its time is scaled with them.) If test inputs are c times as large, the excess error is c^2 times as
large.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.draws import UNIT, draw_normal_units
from ._rows import stack_blocks

SEED_MAKES = "the weights of its teacher"


def rows(*, dimension: int, noise: float, regimes: list[dict[str, str | int]], seed: str) -> pa.Table:
    """Rows of some regimes, each `{ name, rows, scale }`: `rows` of them, with inputs `scale` times as large. noise:
    its standard deviation. Columns: `x` (float32, `dimension`), `y` (float64) and `regime`."""
    weights = draw_normal_units(f"{seed}/teacher", dimension).astype(np.float64)
    weights /= np.sqrt(np.cumsum(weights**2)[-1])  # summed in order, since a BLAS's order depends on the machine
    blocks = []
    for regime in regimes:
        name, count = str(regime["name"]), int(regime["rows"])
        units = draw_normal_units(f"{seed}/{name}/x", count * dimension).reshape(count, dimension)
        x = units * int(regime["scale"]) / UNIT
        drawn = draw_normal_units(f"{seed}/{name}/noise", count) / UNIT
        y = np.cumsum(x * weights, axis=1)[:, -1] + noise * drawn
        blocks.append({"x": x.astype(np.float32), "y": y, "regime": name})
    return stack_blocks(blocks)
