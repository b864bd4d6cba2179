"""Two shifts in their pure form: of the inputs (covariate shift: p(x) moves, p(y|x) stays; Shimodaira 2000, Journal of
Statistical Planning and Inference 90) and of the concept (p(y|x) moves, p(x) stays), by degrees.

Inputs are normal. In the covariate form their first coordinate moves, and beyond 1 of it the class is the other way
round: a sixth of the training rows, and more and more of the test. A linear classifier fits the many and fails; one
that saw the few for what they are does not. In the concept form the boundary is a plane, turned away by degrees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_uniform
from ...core.errors import BadDefinition
from ...core.normal import UNIT, draw_normal_units

if TYPE_CHECKING:
    import pyarrow as pa

_FLIPPED = 0.05
"""The share of labels that chance turns over, everywhere: no classifier errs less often than that."""


_FOLD = 1.0
"""Where, along the first coordinate, the class turns round in the covariate form."""


def rows(*, form: str, width: int, counts: dict[str, int], seed: str) -> pa.Table:
    """Columns `inputs` (float32, `width`), `label` (0 or 1) and `shift`, with `counts` rows for each degree of shift:
    standard deviations by which the mean moved (`covariate`), or degrees of angle by which the boundary turned
    (`concept`: one of 0, 30, 45, 60, 90)."""
    import pyarrow as pa

    if form not in ("covariate", "concept"):
        raise BadDefinition(f"shifted_gaussians: form = {form!r}: use covariate or concept")
    inputs, labels, shifts = [], [], []
    for degree, count in counts.items():
        stream = f"{seed}/{degree}"
        x = (draw_normal_units(f"{stream}/x", count * width) / UNIT).reshape(count, width)
        if form == "covariate":
            x[:, 0] += float(degree)
            truth = (x[:, 1] > 0) ^ (x[:, 0] > _FOLD)
        else:
            cosine, sine = _compute_rotation(degree)
            truth = cosine * x[:, 0] + sine * x[:, 1] > 0
        turned_over = draw_uniform(f"{stream}/flip", np.arange(count, dtype=np.uint64)) < _FLIPPED
        inputs.append(x.astype(np.float32))
        labels.append((truth ^ turned_over).astype(np.int64))
        shifts.append(np.full(count, float(degree)))
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate(inputs).ravel()), width)
    return pa.table({"inputs": column, "label": np.concatenate(labels), "shift": np.concatenate(shifts)})


def _compute_rotation(degrees: str) -> NDArray[np.float64]:
    """Cosine and sine by square roots, which every platform rounds alike."""
    squares = {"0": (4, 0), "30": (3, 1), "45": (2, 2), "60": (1, 3), "90": (0, 4)}
    if degrees not in squares:
        raise BadDefinition(f"shifted_gaussians: a boundary can turn by {', '.join(squares)} degrees, not {degrees}")
    return np.sqrt(np.array(squares[degrees]) / 4)
