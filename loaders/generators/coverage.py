"""Two-hop functions of tokens: the task of Chang et al. 2025, "The Coverage Principle" (arXiv 2505.20278),
reimplemented with a seeded generator.

Both hops are random functions over a vocabulary of X tokens. `two_hop`: target = second(first(x1, x2), x3). `non_tree`:
target = second(first(x1, x2), x2, x3), where x2 reaches the target by two paths.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from ...core.draws import draw_below

SEED_MAKES = "its two functions"


def rows(*, seed: str, tokens: int, structure: Literal["two_hop", "non_tree"]) -> pa.Table:
    """All tokens^3 inputs: columns `x1`, `x2`, `x3`, `bridge` (the first hop's value) and `target`."""
    x1, x2, x3 = np.indices((tokens,) * 3).reshape(3, -1)
    bridge = draw_below(f"{seed}/first", (x1 * tokens + x2).astype(np.uint64), tokens)
    argument = {"two_hop": bridge, "non_tree": bridge * tokens + x2}[structure]
    target = draw_below(f"{seed}/second", (argument * tokens + x3).astype(np.uint64), tokens)
    return pa.table({"x1": x1, "x2": x2, "x3": x3, "bridge": bridge, "target": target})
