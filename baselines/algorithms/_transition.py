"""Shared code of forward and backward correction: a first stage that estimates the label noise for the second.

Patrini et al., CVPR 2017, Theorem 3: the row of which a network trained on the given labels is surest that it is of
class i is an anchor, a row that is certainly of class i; the label probabilities there are row i of the transition
matrix,

    T_ij = P(given label j | true class i).

With noisy probabilities the surest row is an outlier, so the paper takes the 97th percentile on data of ten classes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Data, StepState


class LossCorrection(BaseAlgorithm):
    """Half of the steps on the given labels, then a fresh network on the corrected loss for the other half."""

    additive = True
    transition: Tensor

    def set_up(self) -> None:
        for percentile in self.hyperparameters.exact("percentile"):
            if not 0 < percentile <= 100:
                raise ModelError(f"setting percentile = {percentile:g}: use a number in (0, 100]")
            if percentile < 100 and 100 - percentile >= 100 / self.about.outputs:
                raise ModelError(
                    f"setting percentile = {percentile:g}: with {self.about.outputs} classes, one has about "
                    f"{100 / self.about.outputs:.2g} % of the rows, so its anchor would be a row of another class: use "
                    f"{100 - 50 / self.about.outputs:.4g} or more"
                )
        self.register_buffer("transition", torch.eye(self.about.outputs).repeat(self.about.replicas, 1, 1))

    def stages(self, steps: int) -> tuple[int, ...]:
        if steps < 2:
            raise ModelError("a corrected loss is trained in two stages: give it 2 steps or more")
        return steps // 2, steps - steps // 2

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        transition = estimate_transition(
            answer(*data.inputs).double().softmax(-1), data.weight, self.hyperparameters.exact("percentile")
        )
        self.transition = transition.to(self.transition.dtype)
        return data, True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        logits = network(*batch.inputs)
        corrected = clock.stage > 0
        return average_over_batch((self.corrected if corrected else cross_entropy)(logits, batch.target), batch)

    @abstractmethod
    def corrected(self, logits: Tensor, target: Tensor) -> Tensor:
        """The corrected loss of each row, (K, n), from logits (K, n, C)."""


def estimate_transition(probabilities: Tensor, weight: Tensor, percentile: list[float]) -> Tensor:
    """Transition matrices (K, C, C) by anchors, from probabilities (K, N, C) of rows that weigh (R, N).

    percentile: of each replica; class i's anchor is the first row, from the least to the most probable, up to which
    rows have that share of all weight. 100 is the most probable row. In the released code the anchor may be the row
    one rank further."""
    replicas, rows, classes = probabilities.shape
    order = probabilities.argsort(dim=1, stable=True)
    cumulative_weight = weight.expand(replicas, rows)[..., None].expand(-1, -1, classes).gather(1, order).cumsum(1)
    share = (
        torch.tensor(percentile, dtype=cumulative_weight.dtype, device=cumulative_weight.device).view(-1, 1, 1) / 100
    )
    # Sums of weights differ from the share of their total by rounding alone: this is the tolerance.
    reached = cumulative_weight >= share * cumulative_weight[:, -1:] * (1 - 1e-12)
    anchors = order.gather(1, reached.int().argmax(1, keepdim=True))[:, 0]
    return probabilities.gather(1, anchors[..., None].expand(-1, -1, classes))
