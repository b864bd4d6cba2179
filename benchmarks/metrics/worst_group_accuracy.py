"""Worst-group accuracy: the minimum over groups g of the share of g's rows whose class is correct.

Groups are defined by fields of the rows (`by`, and `of` if a row may be in several groups; `_groups.py`), except those
in `without`:

- CivilComments-WILDS: `of` the eight identities, `by` the label: 16 overlapping groups;
- FMoW-WILDS: `by` region, `without` "Other";
- Waterbirds, CelebA: `by` the background (or sex) and the label.

Koh et al., "WILDS" (ICML 2021); Sagawa et al., "Distributionally Robust Neural Networks for
Group Shifts" (ICLR 2020). Checked against `eval` in wilds/datasets/civilcomments_dataset.py and
fmow_dataset.py of p-lambda/wilds. A group without rows does not count; NaN if there are no groups.
"""

from __future__ import annotations

from ._groups import OverlappingGroups, over_groups
from .accuracy import chance as chance
from .accuracy import per_row as _right

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
OPTIONS = OverlappingGroups
GROUPS = "fixed"
SMOOTH = False

fields, update, merge, compute = over_groups(lambda accuracies, options: accuracies.min(), per_row=_right)
