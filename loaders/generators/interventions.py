"""A linear structural equation model under interventions: what predicts the target when others intervene?

The setting of Parulekar, Shanmugam and Shakkottai 2023, "PAC Generalization via Invariant Representations" (ICML, arXiv
2205.15196): training environments are interventions on a linear SEM, test environments are interventions that no
training had. Variables in causal order, the target Y in the middle:

    X_j = sum over i < j of B_ij X_i + shift_j + scale_j e_j      e_j standard normal

An intervention on X_j sets shift_j and scale_j (soft; the equation stays), or cuts its causes too (hard). Y is never
intervened on, so that its regression on its own causes is the same everywhere, and that on its effects is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import uniform
from ...core.errors import BadDefinition
from ...core.normal import UNIT, normal_units
from ._columns import named

if TYPE_CHECKING:
    import pyarrow as pa

SEED_MAKES = "the weights of its model"

Matrix = NDArray[np.float64]

CAUSES, EFFECTS = 4, 4
"""Variables before Y and after it."""
TARGET = CAUSES


def rows(*, seed: str, environments: list[dict[str, Any]]) -> pa.Table:
    """`rows` rows of each environment (`environment`, its name; `on`, the inputs X1 .. X8 that it intervenes on, by
    number; `shift` and `scale` of their noise; `hard`: whether their causes are cut).

    Columns: `inputs` (float32[8]: X1 .. X8 without Y), `target` (float64), `environment`.
    """
    import pyarrow as pa

    found = weights(seed)
    blocks = [_environment(f"{seed}/{one.get('environment', '')}", found, **one) for one in environments]
    every = np.concatenate(blocks)
    which = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
    inputs = np.delete(every, TARGET, axis=1).astype(np.float32)
    return pa.table(
        {
            "inputs": pa.FixedSizeListArray.from_arrays(pa.array(inputs.ravel()), CAUSES + EFFECTS),
            "target": every[:, TARGET],
            "environment": named([str(one["environment"]) for one in environments], which),
        }
    )


def weights(seed: str) -> Matrix:
    """B (9, 9), upper triangular: the effect of variable i on j, even in size between 0.5 and 1 and of either sign; Y
    depends on all its causes, each of the others on half of those before it."""
    count = CAUSES + 1 + EFFECTS
    each = np.arange(count * count, dtype=np.uint64)
    size = 0.5 + 0.5 * uniform(f"{seed}/size", each).reshape(count, count)
    sign = np.where(uniform(f"{seed}/sign", each).reshape(count, count) < 0.5, -1.0, 1.0)
    there = uniform(f"{seed}/there", each).reshape(count, count) < 0.5
    there[:, TARGET] = True
    there[TARGET, :] = True  # every effect depends on Y
    return np.triu(size * sign * there, 1)


def _environment(
    stream: str, found: Matrix, *, environment: str, rows: int, on: list[int], shift: float, scale: float, hard: bool
) -> Matrix:
    """All nine variables (rows, 9) of one environment; sums are made in the order of the variables."""
    count = len(found)
    if not all(1 <= number <= CAUSES + EFFECTS for number in on):
        raise BadDefinition(f"interventions: {environment}: on names inputs by number, 1 to {CAUSES + EFFECTS}")
    touched = {number - 1 if number <= CAUSES else number for number in on}  # after Y by one place
    noise = (normal_units(stream, rows * count) / UNIT).reshape(rows, count)
    values = np.zeros((rows, count))
    for place in range(count):
        total = shift + scale * noise[:, place] if place in touched else noise[:, place].copy()
        for cause in range(place):
            if not (hard and place in touched):
                total = total + found[cause, place] * values[:, cause]
        values[:, place] = total
    return values
