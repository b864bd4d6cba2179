"""A linear structural equation model under interventions that differ between training and test.

The setting of Parulekar, Shanmugam and Shakkottai 2023, "PAC Generalization via Invariant Representations" (ICML, arXiv
2205.15196): training environments are interventions on a linear SEM, test environments are interventions that are not
in training. The variables are in causal order, with the target Y in the middle:

    X_j = sum over i < j of B_ij X_i + shift_j + scale_j e_j      e_j standard normal

An intervention on X_j sets shift_j and scale_j (soft; the equation stays), or also removes its causes (hard). There is
no intervention on Y, so its regression on its causes is the same in all environments, and that on its effects is not.

A family of interventions has parameters instead of one intervention, and its environments are drawn: which variables,
how many at once, and the shift and the scale of each environment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_uniform
from ...core.errors import BadDefinition
from ._rows import draw_normal, make_counters, stack_blocks

SEED_MAKES = "the weights of its model"

Matrix = NDArray[np.float64]

CAUSES, EFFECTS = 4, 4
"""The numbers of variables before Y and after it."""
TARGET = CAUSES


def rows(*, seed: str, environments: list[dict[str, Any]]) -> pa.Table:
    """`rows` rows of each environment (`environment`, its name; `on`, the inputs X1 .. X8 that it intervenes on, by
    number; `shift` and `scale` of their noise; `hard`: whether their causes are removed).

    With `draws` and `sites`, an entry is a family of `draws` environments, each on `sites` of the inputs in `on`: these
    are drawn, and `shift` and `scale` are drawn uniformly between the two numbers given.

    Columns: `inputs` (float32[8]: X1 .. X8 without Y), `target` (float64), `environment` and `family` (the entry).
    """
    matrix = draw_weights(seed)
    families = [str(entry["environment"]) for entry in environments for _ in range(entry.get("draws", 1))]
    environments = [environment for entry in environments for environment in _draw_interventions(seed, entry)]
    blocks = []
    for environment, family in zip(environments, families, strict=True):
        name = environment.get("environment", "")
        values = _draw_environment(f"{seed}/{name}", matrix, **environment)
        inputs = np.delete(values, TARGET, axis=1).astype(np.float32)
        blocks.append({"inputs": inputs, "target": values[:, TARGET], "environment": str(name), "family": family})
    return stack_blocks(blocks)


def _draw_interventions(seed: str, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Draw the environments of a family, named by its name and a number; an entry without `draws` is one itself."""
    if "draws" not in entry:
        return [entry]
    name, draws, on = entry["environment"], entry["draws"], entry["on"]
    if not 0 < entry["sites"] <= len(on):
        raise BadDefinition(f"interventions: {name}: sites = {entry['sites']}: use 1 to {len(on)}, the inputs of `on`")
    rank = draw_uniform(f"{seed}/{name}/sites", make_counters(draws * len(on))).reshape(draws, -1)
    chosen = np.sort(np.argsort(rank, axis=1, kind="stable")[:, : entry["sites"]], axis=1)
    between = {
        key: low + (high - low) * draw_uniform(f"{seed}/{name}/{key}", make_counters(draws))
        for key, (low, high) in (("shift", entry["shift"]), ("scale", entry["scale"]))
    }
    return [
        {
            "environment": f"{name} {number + 1}",
            "rows": entry["rows"],
            "on": [on[index] for index in chosen[number]],
            "shift": between["shift"][number],
            "scale": between["scale"][number],
            "hard": entry["hard"],
        }
        for number in range(draws)
    ]


def draw_weights(seed: str) -> Matrix:
    """Draw B (9, 9), upper triangular: the effect of variable i on j, uniform in size between 0.5 and 1 and of either
    sign; Y depends on all variables before it, the others on half of those before them."""
    count = CAUSES + 1 + EFFECTS
    each = np.arange(count * count, dtype=np.uint64)
    size = 0.5 + 0.5 * draw_uniform(f"{seed}/size", each).reshape(count, count)
    sign = np.where(draw_uniform(f"{seed}/sign", each).reshape(count, count) < 0.5, -1.0, 1.0)
    has_effect = draw_uniform(f"{seed}/there", each).reshape(count, count) < 0.5
    has_effect[:, TARGET] = True
    has_effect[TARGET, :] = True  # every effect depends on Y
    return np.triu(size * sign * has_effect, 1)


def _draw_environment(
    stream: str, matrix: Matrix, *, environment: str, rows: int, on: list[int], shift: float, scale: float, hard: bool
) -> Matrix:
    """Draw all nine variables (rows, 9) of one environment; sums are in the order of the variables."""
    count = len(matrix)
    if not all(1 <= number <= CAUSES + EFFECTS for number in on):
        raise BadDefinition(f"interventions: {environment}: `on` must have numbers of inputs, 1 to {CAUSES + EFFECTS}")
    targets = {number - 1 if number <= CAUSES else number for number in on}  # inputs after Y are shifted by one
    noise = draw_normal(stream, rows, count)
    values = np.zeros((rows, count))
    for variable in range(count):
        total = shift + scale * noise[:, variable] if variable in targets else noise[:, variable].copy()
        for cause in range(variable):
            if not (hard and variable in targets):
                total = total + matrix[cause, variable] * values[:, cause]
        values[:, variable] = total
    return values
