"""contrast: a row's pixels are moved towards its mean, to between a fifth and half of their distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_uniform
from ._pixels import broadcast_per_row, clip_to_original

LEAST, MOST = 0.2, 0.5


def augment(values: NDArray[Any], stream: str, row_ids: NDArray[np.uint64]) -> NDArray[Any]:
    contrast = broadcast_per_row(LEAST + (MOST - LEAST) * draw_uniform(stream, row_ids), values)
    centre = values.mean(axis=tuple(range(1, values.ndim)), keepdims=True)
    return clip_to_original(values, centre + contrast * (values - centre))
