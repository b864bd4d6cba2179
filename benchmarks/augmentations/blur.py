"""blur: each pixel becomes the mean of its 3 x 3 neighbourhood, with edges replicated."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._pixels import clip_to_original


def augment(values: NDArray[Any], stream: str, row_ids: NDArray[np.uint64]) -> NDArray[Any]:
    height, width = values.shape[1:3]
    rest = [(0, 0)] * (values.ndim - 3)
    padded = np.pad(values.astype(np.float64), [(0, 0), (1, 1), (1, 1), *rest], mode="edge")
    total = sum(padded[:, y : y + height, x : x + width] for y in range(3) for x in range(3))
    return clip_to_original(values, np.asarray(total) / 9)
