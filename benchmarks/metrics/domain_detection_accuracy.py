"""Detection accuracy, averaged over domains: the mean over groups of the mean over their images.

Each domain counts once, regardless of its number of images: the metric of GlobalWheat-WILDS, whose domains are
acquisition sessions (Koh et al., "WILDS", ICML 2021). Checked against `eval` in wilds/datasets/globalwheat_dataset.py
of p-lambda/wilds. Only domains with images count; NaN if there are none.
"""

from __future__ import annotations

from ._groups import Groups, over_groups
from .detection_accuracy import chance as chance
from .detection_accuracy import per_row as _right

VERSION = 1
TASKS = ("detection",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
OPTIONS = Groups
GROUPS = "drawn"

fields, update, merge, compute = over_groups(lambda accuracies, options: accuracies.mean(), per_row=_right)
