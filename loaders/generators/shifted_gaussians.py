"""Two pure shifts of graded size: covariate shift (p(x) changes, p(y|x) does not; Shimodaira 2000, Journal of
Statistical Planning and Inference 90) and concept shift (p(y|x) changes, p(x) does not).

Inputs are normal. In the covariate form their first coordinate shifts, and where it is above 1 the classes are
exchanged: for a sixth of the training rows, and increasingly many test rows. A linear classifier fits the majority and
fails; one that learns the exception does not. In the concept form the boundary is a hyperplane that rotates.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_uniform
from ._rows import draw_normal, stack_blocks

_FLIPPED = 0.05
"""The share of labels that are flipped at random in all rows: the lowest error of any classifier."""


_FOLD = 1.0
"""The value of the first coordinate above which the classes are exchanged in the covariate form."""


def rows(*, form: Literal["covariate", "concept"], width: int, counts: dict[str, int], seed: str) -> pa.Table:
    """Columns `inputs` (float32, `width`), `label` (0 or 1) and `shift`, with `counts` rows for each size of the shift:
    the shift of the mean in standard deviations (`covariate`), or the angle of the boundary in degrees (`concept`: one
    of 0, 30, 45, 60, 90)."""
    blocks = []
    for degree, count in counts.items():
        stream = f"{seed}/{degree}"
        x = draw_normal(f"{stream}/x", count, width)
        if form == "covariate":
            x[:, 0] += float(degree)
            truth = (x[:, 1] > 0) ^ (x[:, 0] > _FOLD)
        else:
            cosine, sine = _compute_rotation(degree)
            truth = cosine * x[:, 0] + sine * x[:, 1] > 0
        turned_over = draw_uniform(f"{stream}/flip", np.arange(count, dtype=np.uint64)) < _FLIPPED
        label = (truth ^ turned_over).astype(np.int64)
        blocks.append({"inputs": x.astype(np.float32), "label": label, "shift": float(degree)})
    return stack_blocks(blocks)


def _compute_rotation(degrees: str) -> NDArray[np.float64]:
    """Return cosine and sine, by square roots, which all platforms round alike."""
    squares = {"0": (4, 0), "30": (3, 1), "45": (2, 2), "60": (1, 3), "90": (0, 4)}
    return np.sqrt(np.array(squares[degrees]) / 4)
