"""The padding of batches of texts."""

from __future__ import annotations

import numpy as np
from farshift.loaders.batching.order import Order
from numpy.typing import NDArray


def compute_padding_share(lengths: NDArray[np.int64], order: Order, batch_size: int) -> float:
    """Return the fraction of an epoch's token positions that are padding, if each batch is padded to its longest row; 0
    for an empty epoch."""
    rows = order.at(np.arange(len(lengths)))
    batches = np.split(rows, range(batch_size, len(rows), batch_size))
    places = sum(len(some) * int(lengths[some].max(initial=0)) for some in batches)
    return 1 - float(lengths.sum()) / places if places else 0.0
