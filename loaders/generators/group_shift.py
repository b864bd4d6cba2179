"""People of two groups between which inputs, concept or an unseen cause differ by a graded amount.

For a person with the sensitive attribute A in {0, 1}, u_1, u_2, u_3 and e standard normal:

    x_1 = u_1 + covariate A,   x_2 = u_2,   h = u_3 + A
    Y = 1 if x_1^2 + (1 - concept A) x_2 + omitted h + e / 4 > 1, else 0

covariate shifts p(x) between groups, and concept p(y | x): 1 makes x_2 irrelevant to group 1, 2 reverses it. `omitted`
is the effect of h, which is no input. Mhasawade, Rahman, Haskell-Craig and Chunara simulate these three shifts between
groups ("Understanding Disparities in Post Hoc Machine Learning Explanation", arXiv:2401.14539); this model is our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ._rows import draw_normal, stack_blocks

PEOPLE = ("group 0", "group 1")


def rows(*, seed: str, regimes: Mapping[str, Mapping[str, float]], counts: Mapping[str, list[int]]) -> pa.Table:
    """`counts` people of each group (0, then 1) in each sample of each regime, which names the shifts that are not 0.

    Columns: `x` (float32[2]); `attribute` (A) and `label` (Y), integers; `people` (the group), `regime` and `sample`,
    text. All regimes have the same u and e, so that they differ in nothing but the shifts.
    """
    attribute = np.concatenate([np.repeat([0, 1], of) for of in counts.values()])
    sample = np.repeat(np.arange(len(counts)), [sum(of) for of in counts.values()])
    u = [draw_normal(f"{seed}/{name}", len(attribute)) for name in ("u_1", "u_2", "u_3", "e")]

    def make_block(
        regime: str, covariate: float = 0.0, concept: float = 0.0, omitted: float = 0.0
    ) -> dict[str, NDArray[Any] | str]:
        first = u[0] + covariate * attribute
        score = first * first + (1 - concept * attribute) * u[1] + omitted * (u[2] + attribute) + 0.25 * u[3]
        return {
            "x": np.stack([first, u[1]], axis=1).astype(np.float32),
            "attribute": attribute,
            "label": (score > 1).astype(np.int64),
            "people": np.array(PEOPLE, object)[attribute],
            "regime": regime,
            "sample": np.array(list(counts), object)[sample],
        }

    return stack_blocks([make_block(regime, **shifts) for regime, shifts in regimes.items()])
