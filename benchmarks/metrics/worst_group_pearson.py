"""Worst-group Pearson correlation: the minimum over groups g of the correlation of predictions and true values in g.

The metric of PovertyMap-WILDS, with urban and rural places as groups: Koh et al., "WILDS" (ICML 2021). Checked against
`eval` in wilds/datasets/poverty_dataset.py of p-lambda/wilds. NaN if it is not defined in a group: the predictions or
true values are constant, or a row has no answer. (WILDS ignores a group with constant predictions.)
"""

from __future__ import annotations

from . import pearson
from ._groups import OverlappingGroups, over_groups
from .pearson import chance as chance

VERSION = 1
TASKS = ("regression",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (-1.0, 1.0)
OPTIONS = OverlappingGroups
GROUPS = "fixed"
SMOOTH = False

fields, update, merge, compute = over_groups(
    lambda correlations, options: correlations.min(),
    update=pearson.update,
    merge=pearson.merge,
    compute=pearson.compute,
)
