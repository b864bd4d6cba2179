"""Shape bias: of the rows on which two cues name different classes, and the model chose one of the two, the share on
which it chose the label's.

For pictures with the shape of one thing (the label) and the texture of another (the field `against`), this is the shape
bias of Geirhos et al. 2019 (ICLR, arXiv 1811.12231, section 2.4): shape decisions divided by shape and texture
decisions. Rows whose cues agree, or that have no other cue, do not count, nor do rows given a third class. A row
without an answer counts as a choice of the other cue, so that abstaining never helps. NaN if there is no decision.
"""

from __future__ import annotations

import numpy as np

from ._base import Answers, Columns, State, StrictOptions, Task, Values, add_states

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

merge = add_states


class Options(StrictOptions):
    """`against`: the field with the other cue: the number of a class, or its name (other texts are no cue)."""

    against: str


OPTIONS = Options


def fields(options: Options) -> tuple[str, ...]:
    """Return the field with the other cue."""
    return (options.against,)


def update(answers: Answers, truth: Values, task: Task, columns: Columns, options: Options) -> State:
    """Count the conflicts decided by the label's cue (`shape`) and by the other (`other`), int64."""
    number_of = {name: number for number, name in enumerate(task.names)}
    cues = [number_of.get(cue, -1) if isinstance(cue, str) else int(cue) for cue in columns[options.against]]
    other, given = np.array(cues, np.int64), answers.prediction
    conflict = (other >= 0) & (other != truth)
    chose_other = (given == other) | (given == -1)
    return {
        "shape": np.array((conflict & (given == truth)).sum()),
        "other": np.array((conflict & chose_other).sum()),
    }


def compute(state: State, options: Options) -> float:
    """Compute the share of decisions for the label's cue; NaN if there are none."""
    decided = state["shape"] + state["other"]
    return float(state["shape"] / decided) if decided else float("nan")
