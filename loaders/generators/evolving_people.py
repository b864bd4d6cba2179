"""People whose inputs depend on a sensitive attribute, while the rule of their label changes from period to period.

A structural causal model, so that counterfactuals are exact. For a person of period t of T:

    A in {0, 1} by chance;  u_1, u_2, e standard normal
    x_1 = u_1 + effect A,   x_2 = u_2,   Y = 1 if (1 - t / (T - 1)) u_1 + t / (T - 1) u_2 + e / 4 > 0, else 0

Y does not depend on A, and x_1 does: a model that reads x_1 and not A treats people differently by A, and one that
predicts from x_1 - effect A does not. The counterfactual row of a person has 1 - A and the same u_1, u_2, e.

The setting of Lin, Zhao, Shao, Meng, Zhao and Chen, "Pursuing Counterfactual Fairness via Sequential Autoencoder Across
Domains" (arXiv:2309.13005, whose second version has another title and method): domains that evolve, and fairness under
a change of the sensitive attribute; this model is our own.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ...core.draws import draw_below
from ...core.errors import BadDefinition
from ..readers._arrow_types import to_tensor_column
from ._rows import draw_normal, make_counters, select_words

FORMS = ("observed", "counterfactual")


def rows(*, seed: str, periods: int, people: int, effect: float) -> pa.Table:
    """`people` people of each period, each twice: as observed and counterfactual (`form`).

    Columns: `x` (float32[2]), `attribute` (A), `label` (Y), `person`, `period`, all integers but `x` and `form`.
    """
    if periods < 2:
        raise BadDefinition(f"periods = {periods}: use 2 or more")
    count = periods * people
    first, second, noise = (draw_normal(f"{seed}/{name}", count) for name in ("u_1", "u_2", "e"))
    attribute = draw_below(f"{seed}/attribute", make_counters(count), 2)
    period = np.repeat(np.arange(periods), people)
    share = period / (periods - 1)
    label = ((1 - share) * first + share * second + 0.25 * noise > 0).astype(np.int64)
    both = np.concatenate([attribute, 1 - attribute])
    x = np.stack([np.tile(first, 2) + effect * both, np.tile(second, 2)], axis=1).astype(np.float32)
    return pa.table(
        {
            "x": to_tensor_column(x),
            "attribute": both,
            "label": np.tile(label, 2),
            "person": np.tile(np.arange(count), 2),
            "period": np.tile(period, 2),
            "form": select_words(FORMS, np.repeat(np.arange(2), count)),
        }
    )
