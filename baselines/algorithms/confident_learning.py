"""Confident learning: rows whose labels are probably wrong are estimated by cross-validation and removed before
training.

1. Out-of-sample probabilities p of all rows, by `assign_folds`-fold cross-validation, stratified by label.
2. Thresholds t_j, the mean of p_j over the rows labelled j; the confident joint C_ij counts the rows labelled i whose
   largest probability among those with p_j >= t_j is that of j.
3. Q, the joint distribution of given and true labels: each row of C in proportion to how many labels i there are.
4. Prune by noise rate: for each i != j, the N Q_ij rows labelled i of largest p_j - p_i are left out.
5. A fresh network on the rows that stay, a row labelled i weighing (sum_j Q_ji) / Q_ii.

Northcutt et al., JAIR 2021, section 3. Steps 1 and 5 share the steps by `cross_percent`; the folds share the first part
evenly. Held-out and pruned rows are drawn like the others, with weight 0. Each row counts as one, whatever its weight
in the training data. The authors' package rounds Q to whole rows, and retains rows of step 4 whose likeliest class is
their label; here neither is done.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import derive_stream, draw_permutations, make_keys
from ..training.losses import cross_entropy
from . import BaseAlgorithm, Batch, Data, StepState
from ._rows import compute_selected_mean, read_entries

KIND = "corrupted-label"
CITATION = (
    "Northcutt, Jiang and Chuang, Confident learning: estimating uncertainty in dataset labels, JAIR 2021 "
    "(arXiv:1911.00068)"
)
SETTINGS: dict[str, Any] = {"folds": 4, "cross_percent": 50}
"""folds: of cross-validation (4 in the paper's experiments). cross_percent: of all steps, for cross-validation."""
SEARCH: dict[str, Any] = {"folds": ["choice", 3, 4, 5], "cross_percent": ["choice", 40, 50, 60]}
LIMITS = {"folds": "at least 2"}


class Algorithm(BaseAlgorithm):
    fold: Tensor
    probabilities: Tensor
    weight: Tensor

    def set_up(self) -> None:
        self.folds = self.hyperparameters["folds"]
        rows = self.about.replicas, len(self.about.data)
        given = self.about.data.target.expand(rows)
        drawn = derive_stream(make_keys(self.about.names, given.device), "folds")
        self.register_buffer("fold", assign_folds(given, self.folds, drawn))
        self.register_buffer("probabilities", torch.zeros(*rows, self.about.outputs))
        self.register_buffer("weight", torch.ones(rows))

    def stages(self, steps: int) -> tuple[int, ...]:
        each = max(1, steps * self.hyperparameters["cross_percent"] // (100 * self.folds))
        last = steps - self.folds * each
        if last < 1:
            raise ModelError(
                f"confident_learning trains {self.folds} folds and a last network, and of {steps} steps none is left "
                "for the last: use more steps, or a smaller cross_percent"
            )
        return (*[each] * self.folds, last)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        errors = cross_entropy(network(*batch.inputs), batch.target)
        if clock.stage < self.folds:
            return compute_selected_mean(errors, read_entries(self.fold, batch.rows) != clock.stage, batch)
        return compute_selected_mean(errors, read_entries(self.weight, batch.rows), batch)

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        held_out = (self.fold == stage - 1)[..., None]
        answered = answer(*data.inputs).softmax(-1)
        self.probabilities = torch.where(held_out, answered, self.probabilities)
        if stage == self.folds:
            self.weight = compute_row_weights(self.probabilities, data.target.expand(self.fold.shape)).to(
                self.weight.dtype
            )
        return data, True


def assign_folds(given: Tensor, count: int, keys: Tensor) -> Tensor:
    """Which of `count` folds each row (K, N) belongs to: labels are spread evenly over folds, rows at random."""
    shuffled = draw_permutations(keys, given.shape[1])
    order = shuffled.gather(1, given.gather(1, shuffled).argsort(dim=1, stable=True))
    dealt = (torch.arange(given.shape[1], device=given.device) % count).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, dealt)


def compute_row_weights(probabilities: Tensor, given: Tensor) -> Tensor:
    """The weight of each row in the last training, (K, N) float64, 0 if it is pruned: from out-of-sample probabilities
    (K, N, C) and labels (K, N)."""
    joint = estimate_joint(probabilities, given)
    right = joint.diagonal(dim1=1, dim2=2)
    weight = torch.where(right > 0, joint.sum(1) / right, 1.0).gather(1, given)
    return weight.masked_fill(find_pruned_rows(probabilities, given, joint), 0.0)


def compute_confident_joint(probabilities: Tensor, given: Tensor) -> Tensor:
    """C, (K, C, C) int64: given labels by confident ones."""
    replicas, _, classes = probabilities.shape
    rows = F.one_hot(given, classes).sum(1)
    own = probabilities.gather(2, given[..., None])[..., 0]
    sums = torch.zeros_like(probabilities[:, 0]).scatter_add_(1, given, own)
    # Of a class that no row is labelled with, no row is confident.
    thresholds = torch.where(rows > 0, sums / rows, torch.inf)
    confident = probabilities >= thresholds[:, None]
    likeliest = probabilities.masked_fill(~confident, -1.0).argmax(-1)
    cells = torch.zeros(replicas, classes * classes, dtype=torch.int64, device=given.device)
    cells.scatter_add_(1, given * classes + likeliest, confident.any(-1).long())
    return cells.view(replicas, classes, classes)


def estimate_joint(probabilities: Tensor, given: Tensor) -> Tensor:
    """Q, (K, C, C) float64, which sums to 1. Where no row labelled i is confident, those labels count as right."""
    joint = compute_confident_joint(probabilities, given).double()
    rows = F.one_hot(given, joint.shape[-1]).sum(1).double()
    totals = joint.sum(2, keepdim=True)
    same = torch.eye(joint.shape[-1], dtype=joint.dtype, device=joint.device)
    return torch.where(totals > 0, joint / totals.clamp(min=1), same) * rows[..., None] / given.shape[1]


def find_pruned_rows(probabilities: Tensor, given: Tensor, joint: Tensor) -> Tensor:
    """Which rows are left out, (K, N) bool."""
    rows, classes = given.shape[1], joint.shape[-1]
    number = (joint * rows).round().long()
    counts = F.one_hot(given, classes).sum(1)
    starts = counts.cumsum(1) - counts
    places = torch.arange(rows, device=given.device) - starts.gather(1, given.sort(dim=1).values)
    own = probabilities.gather(2, given[..., None])[..., 0]
    is_pruned = torch.zeros_like(given, dtype=torch.bool)
    for j in range(classes):
        order = (probabilities[..., j] - own).argsort(dim=1, descending=True, stable=True)
        order = order.gather(1, given.gather(1, order).argsort(dim=1, stable=True))
        rank = torch.empty_like(order).scatter_(1, order, places)
        is_pruned |= (rank < number[..., j].gather(1, given)) & (given != j)
    return is_pruned
