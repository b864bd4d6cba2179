"""Worst-group regret: the maximum over groups of the error rate above that of the best constant prediction.

With err_g the error rate on group g's rows, and s_g the share of the most frequent true class, 1 - s_g is the lowest
error rate of a constant prediction on the group in hindsight:

    regret_g = err_g - (1 - s_g)        the value: max over groups g of regret_g

Lower is better; if it is below 0, every group is predicted better than by its own best constant. The worst accuracy
identifies the hardest group; the worst regret identifies a group on which the model is worse than a simple predictor
for that group alone.

Regret on each of several groups, which may overlap, against the best in hindsight on that group: Acharya et al.,
"Oracle Efficient Algorithms for Groupwise Regret" (ICLR 2024, arXiv:2310.04652). The worst regret instead of the worst
risk: Agarwal and Zhang, "Minimax Regret Optimization for Robust Learning under Distribution Shift" (COLT 2022,
arXiv:2202.05436). There are two differences. The comparators here are constants, not a class of models (a metric trains
none), so a model that has learnt anything about a group has a regret below 0 on it. And this is batch regret, not the
regret of online learning: no label is revealed before the next row, the sum over rounds becomes a mean over rows, and
the bounds of that literature do not apply.

Groups are defined as in `worst_group_accuracy`. A group without rows does not count; NaN if there are no groups. The
error rate of a small group is noisy: prefer groups with some hundred rows.
"""

from __future__ import annotations

import numpy as np

from ._base import Answers, State, Task, Values, count_classes
from ._groups import OverlappingGroups, over_groups

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (-1.0, 1.0)
OPTIONS = OverlappingGroups
GROUPS = "fixed"
SMOOTH = False


def _count(answers: Answers, truth: Values, task: Task) -> State:
    """Count the `wrong` rows, shape (), and the rows of each true class, `classes` (task.classes,), both int64."""
    return {"wrong": np.array(np.count_nonzero(answers.prediction != truth)), "classes": count_classes(truth, task)}


def _compute_regret(counts: State) -> float:
    classes = counts["classes"]
    rows = classes.sum()
    return float((counts["wrong"] - (rows - classes.max())) / rows)


fields, update, merge, compute = over_groups(
    lambda regrets, options: regrets.max(), update=_count, compute=_compute_regret
)
