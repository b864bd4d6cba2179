"""LMS-k: one input that separates the classes linearly, and further inputs that separate them by k slabs (Shah et al.
2020, The Pitfalls of Simplicity Bias, arXiv 2006.07710).

All inputs are in [-1, 1], and each alone determines the class with the same margin. A network relies only on the linear
input: if it is shuffled, the network is at chance although the other inputs determine the class; if all others are
shuffled, its accuracy does not change.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_permutation, draw_uniform
from ...core.errors import BadDefinition
from ._rows import stack_blocks

MARGIN = 0.1
"""Half the distance between two neighbouring slabs."""

_INNER = 0.75
"""The share of rows in the inner slabs, for a class with slabs at two distances from the centre."""


def rows(*, slabs: int, width: int, counts: dict[str, int], seed: str) -> pa.Table:
    """Columns `inputs` (float32, `width`: the linear one first), `label` (0 or 1) and `environment`. `counts` has the
    number of rows for each environment: `as drawn`, `linear shuffled`, `slabs shuffled` (a row's slab inputs are all
    from one other row)."""
    if slabs not in (3, 5):
        raise BadDefinition(f"slabs: slabs = {slabs}: use 3 or 5")
    blocks = []
    for name, count in counts.items():
        counter = np.arange(count, dtype=np.uint64)
        label = np.arange(count) % 2
        linear = np.where(label == 1, 1.0, -1.0) * (MARGIN + (1 - MARGIN) * draw_uniform(f"{seed}/{name}/0", counter))
        others = [draw_slab_input(label, slabs, f"{seed}/{name}/{index}") for index in range(1, width)]
        table = np.column_stack([linear, *others])
        order = draw_permutation(f"{seed}/{name}/order", counter)
        if name == "linear shuffled":
            table[:, 0] = table[order, 0]
        elif name == "slabs shuffled":
            table[:, 1:] = table[order, 1:]
        elif name != "as drawn":
            raise BadDefinition(f"slabs: counts: unknown environment {name!r}")
        blocks.append({"inputs": table.astype(np.float32), "label": label, "environment": name})
    return stack_blocks(blocks)


def draw_slab_input(label: NDArray[np.int64], slabs: int, stream: str) -> NDArray[np.float64]:
    """Draw one input with `slabs` slabs of equal width over [-1, 1], `2 * MARGIN` apart, whose classes alternate; the
    middle slab is of class 0. Shape (rows,)."""
    counter = np.arange(len(label), dtype=np.uint64)
    wide = (2 - 2 * MARGIN * (slabs - 1)) / slabs
    inner = draw_uniform(f"{stream}/inner", counter) < _INNER
    # Slabs by their distance from the middle one: 0, 1, 2.
    distance = np.where(label == 1, 1, np.where(inner, 0, 2) if slabs == 5 else 0)
    start = distance * (wide + 2 * MARGIN) - wide / 2
    side = np.where(draw_uniform(f"{stream}/side", counter) < 0.5, -1.0, 1.0)
    return side * (start + wide * draw_uniform(f"{stream}/within", counter))
