"""Sums or products mod p over all pairs: tasks of the grokking literature (Power et al. 2022, arXiv 2201.02177)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

OPERATIONS = {"sum": np.add, "product": np.multiply}


def rows(*, modulus: int, operation: str = "sum") -> pa.Table:
    """All modulus^2 pairs: columns `a`, `b` and the name of the operation, each in [0, modulus)."""
    a, b = np.indices((modulus, modulus)).reshape(2, -1)
    return pa.table({"a": a, "b": b, operation: OPERATIONS[operation](a, b) % modulus})
