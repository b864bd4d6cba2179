"""Arrays as columns of fixed shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def tensor_column(values: NDArray[Any]) -> pa.FixedSizeListArray:
    """An array of shape (rows, ...) as a column of one tensor a row."""
    import pyarrow as pa

    flat = np.ascontiguousarray(values).reshape(len(values), -1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
