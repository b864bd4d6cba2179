"""Detection of label errors: how well a model identifies corrupted labels.

The suspicion of a training row's observed label is 1 - p(observed label): one minus the self-confidence of Northcutt,
Jiang and Chuang (Confident Learning, JAIR 2021), here of the trained model itself rather than of a model that has not
seen the row. It is compared with the labels that are actually corrupted by

- AUROC: the probability that a corrupted label is more suspicious than an intact one;
- average precision: the same with most weight on the top of the ranking, where labels would be reviewed;
- F1 at the true noise rate: as many labels are flagged as were corrupted, so precision, recall and F1 are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..metrics import State, find_metric
from ..metrics._base import concatenate_states, get_probabilities
from ..model import Task
from ..statistics.clusters import INDEPENDENT, Clustering
from ..statistics.interval import Estimate, NotAvailable, Record, make_estimate
from ..statistics.sample import Replicates, make_replicates
from ..statistics.variance_estimate import estimate_end_variance, estimate_seed_variance

CORRUPTED = Task("classification", inputs=(), label="corrupted", classes=2)


@dataclass(frozen=True)
class LabelErrors(Record):
    """Measures of how well suspicion identifies corrupted labels."""

    auroc: Estimate | NotAvailable
    average_precision: Estimate | NotAvailable
    f1: Estimate | NotAvailable


def estimate_label_error_detection(
    doubt: NDArray[np.floating[Any]],
    corrupted: NDArray[np.bool_],
    groups: NDArray[np.int64],
    clustering: Clustering = INDEPENDENT,
) -> LabelErrors:
    """Estimate each measure with its 95 % t interval over rows, by the delete-a-group jackknife, and over training
    seeds.

    doubt: (seeds, n), finite, higher for a more suspicious label; only its order matters. Pass -p(observed label)
    rather than 1 - p, which in 32 bits ties every p below 3e-8. corrupted: (n,), which observed labels differ from the
    true ones. groups: (n,), the jackknife group of each row (`statistics.sample.assign_row_groups`); clustering: of the
    rows.
    """
    corrupted_count = int(corrupted.sum())
    if corrupted_count in (0, len(corrupted)):
        none = NotAvailable(f"{'every' if corrupted_count else 'no'} label is corrupted: label errors cannot be ranked")
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
        estimate(
            lambda answers, corrupted, task: {"doubt": get_probabilities(answers)[:, 1], "corrupted": corrupted},
            concatenate_states,
            compute_f1_at_noise_rate,
        ),
    )


Update = Callable[[Answers, NDArray[np.bool_], Task], State]
Merge = Callable[[State, State], State]
Compute = Callable[[State], float]


def _rank_doubts(doubt: NDArray[np.floating[Any]]) -> Answers:
    """Return predictions of "is this label corrupted?" whose probabilities have the order and ties of `doubt` (n,)."""
    levels, rank = np.unique(doubt, return_inverse=True)
    share = ((rank + 1) / (len(levels) + 1)).astype(np.float32)
    return Answers.all_given(np.zeros(len(doubt), np.int64), np.stack([1 - share, share], axis=1))


def compute_f1_at_noise_rate(state: State) -> float:
    """Compute the F1 of flagging the labels with the highest `doubt` (n,), as many as are `corrupted` (n,); NaN if none
    is.

    If tied doubts straddle the cut, it is the mean over all choices among them."""
    doubt, corrupted = state["doubt"], state["corrupted"]
    flags = int(corrupted.sum())
    if not flags:
        return nan
    cut = np.partition(doubt, -flags)[-flags]
    above, at = doubt > cut, doubt == cut
    chance = (flags - int(above.sum())) / int(at.sum())
    return float(corrupted[above].sum() + chance * corrupted[at].sum()) / flags


def _estimate_score(sample: Replicates, fewer: int) -> Estimate | NotAvailable:
    """Estimate a measure from a sample. `fewer`: the number of rows of the rarer kind, corrupted or intact, which
    limits the certainty of a perfect score."""
    each = sample.per_seed
    value = fsum(each) / len(each)
    estimate = make_estimate(
        value,
        [sample.spread(), estimate_end_variance(value, fewer)],
        [estimate_seed_variance(each)],
        sample.bounds,
        row_count=sample.rows,
        seed_count=len(each),
        per_seed=each,
        clustering=sample.clustering,
    )
    if estimate.defined:
        return estimate
    return NotAvailable(f"{value:.3f} on all rows, but not defined on some subsets: no interval")
