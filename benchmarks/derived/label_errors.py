"""Does a model find the labels that were corrupted? Detection of label errors.

The less probable a model holds a training row's given label, the more suspicious is the label: suspicion is 1 - p(given
label), the self-confidence of Northcutt, Jiang and Chuang (Confident Learning, JAIR 2021), here of the trained model
itself rather than of one that has not seen the row. Against the labels truly corrupted, suspicion is judged by

- AUROC: whether a corrupted label is more suspicious than an intact one;
- average precision: the same with most weight on the top of the list, where labels would be looked at again;
- F1 at the true noise rate: as many labels are flagged as were corrupted, so that precision, recall and F1 are one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum, isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..metrics import State, find_metric
from ..metrics._probabilities import get_probabilities
from ..model import Task
from ..statistics.clusters import INDEPENDENT, Clustering
from ..statistics.interval import Estimate, compute_interval, read_estimate
from ..statistics.jackknife import estimate_end_variance
from ..statistics.not_available import NotAvailable
from ..statistics.sample import Replicates, make_replicates
from ..statistics.variance_estimate import estimate_seed_variance

CORRUPTED = Task("classification", inputs=(), label="corrupted", classes=2)


@dataclass(frozen=True)
class LabelErrors:
    """How well suspicion finds corrupted labels."""

    auroc: Estimate | NotAvailable
    average_precision: Estimate | NotAvailable
    f1: Estimate | NotAvailable

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; six decimals."""
        return {
            "auroc": self.auroc.to_dict(),
            "average_precision": self.average_precision.to_dict(),
            "f1": self.f1.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> LabelErrors:
        """What `to_dict` wrote."""
        return cls(*(read_estimate(record[name]) for name in ("auroc", "average_precision", "f1")))


def estimate_label_error_detection(
    doubt: NDArray[np.floating[Any]],
    corrupted: NDArray[np.bool_],
    groups: NDArray[np.int64],
    clustering: Clustering = INDEPENDENT,
) -> LabelErrors:
    """Each number with its 95 % t interval over rows, by the delete-a-group jackknife, and over training seeds.

    doubt: (seeds, n), finite, higher the more suspicious a training row's given label is; only its order counts. Give
    -p(given label) rather than 1 - p, which in 32 bits ties every p below 3e-8. corrupted: (n,), which given labels are
    not the true ones. groups: (n,), the group that each row is left out with (`statistics.sample.assign_row_groups`);
    clustering: of the rows.
    """
    corrupted_count = int(corrupted.sum())
    if corrupted_count in (0, len(corrupted)):
        none = NotAvailable(
            f"{'every' if corrupted_count else 'no'} label is corrupted: there is nothing to tell apart"
        )
        return LabelErrors(none, none, none)
    answers = [_rank_doubts(row) for row in doubt]
    _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        alone = NotAvailable("all rows are in one group: no interval")
        return LabelErrors(alone, alone, alone)
    members = [np.flatnonzero(group == number) for number in range(len(sizes))]

    def estimate(update: Update, merge: Merge, compute: Compute) -> Estimate | NotAvailable:
        states = [
            [update(seed_answers[rows], corrupted[rows], CORRUPTED) for rows in members] for seed_answers in answers
        ]
        sample = make_replicates(states, merge, compute, sizes, (0.0, 1.0), clustering)
        return _estimate_score(sample, min(corrupted_count, len(corrupted) - corrupted_count))

    auroc, precision = find_metric("auroc"), find_metric("average_precision")
    return LabelErrors(
        estimate(auroc.update, auroc.merge, auroc.compute),
        estimate(precision.update, precision.merge, precision.compute),
        estimate(_collect_doubts, _merge_doubts, compute_f1_at_noise_rate),
    )


Update = Callable[[Answers, NDArray[np.bool_], Task], State]
Merge = Callable[[State, State], State]
Compute = Callable[[State], float]


def _rank_doubts(doubt: NDArray[np.floating[Any]]) -> Answers:
    """Answers to "is this label corrupted?" whose probabilities have the order of `doubt` (n,), ties and all."""
    levels, rank = np.unique(doubt, return_inverse=True)
    share = ((rank + 1) / (len(levels) + 1)).astype(np.float32)
    return Answers.all_given(np.zeros(len(doubt), np.int64), np.stack([1 - share, share], axis=1))


def _collect_doubts(answers: Answers, corrupted: NDArray[np.bool_], task: Task) -> State:
    return {"doubt": get_probabilities(answers)[:, 1], "corrupted": corrupted}


def _merge_doubts(left: State, right: State) -> State:
    return {name: np.concatenate([left[name], right[name]]) for name in left}


def compute_f1_at_noise_rate(state: State) -> float:
    """F1 of flagging the labels of most `doubt` (n,), as many as are `corrupted` (n,); NaN where none is.

    Where equal doubts straddle the cut, the mean over all choices among them."""
    doubt, corrupted = state["doubt"], state["corrupted"]
    flags = int(corrupted.sum())
    if not flags:
        return nan
    cut = np.partition(doubt, -flags)[-flags]
    above, at = doubt > cut, doubt == cut
    chance = (flags - int(above.sum())) / int(at.sum())
    return float(corrupted[above].sum() + chance * corrupted[at].sum()) / flags


def _estimate_score(sample: Replicates, fewer: int) -> Estimate | NotAvailable:
    """`fewer`: how many rows there are of the rarer sort, corrupted or intact: as surely is a perfect number known."""
    value = fsum(sample.per_seed) / len(sample.per_seed)
    rows = [sample.spread(), estimate_end_variance(value, fewer)]
    low, high, row_se, seed_se = compute_interval(value, rows, [estimate_seed_variance(sample.per_seed)], sample.bounds)
    if isnan(low):
        return NotAvailable(f"{value:.3f} on all rows, but not defined without some of them: no interval")
    each = tuple(sample.per_seed)
    return Estimate(value, low, high, row_se, seed_se, sample.rows, len(each), each, sample.clustering)
