"""(a b) mod p over all pairs: the second task of the grokking literature (Power et al. 2022, arXiv 2201.02177)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def rows(*, modulus: int) -> pa.Table:
    """All modulus^2 pairs: columns `a`, `b` and `product`, each in [0, modulus)."""
    a, b = (grid.ravel() for grid in np.meshgrid(np.arange(modulus), np.arange(modulus), indexing="ij"))
    return pa.table({"a": a, "b": b, "product": a * b % modulus})
