"""The order of an epoch: a pure function of (manifest identity, part, seed, epoch) and the row ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..splits.draws import shuffled


def epoch_order(identity: str, part: str, seed: int, epoch: int, row_ids: NDArray[np.uint64]) -> NDArray[np.int64]:
    """A permutation of the rows' positions, shape (rows,); the same on every machine, world size and worker."""
    return shuffled(f"{identity}/{part}/{seed}/{epoch}", row_ids)
