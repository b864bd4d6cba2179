"""Forward correction: the predicted probabilities are multiplied by the transition matrix before the loss.

    -log sum_i p_i T_iy,    T_ij = P(given label j | true class i)

Patrini et al., CVPR 2017, Theorem 2: its minimiser under wrong labels is that of cross-entropy under true ones. Half of
the steps train a network on the given labels, from which T is estimated; a fresh one on the corrected loss follows.

Theorem 3: the row of which the first network is surest that it is of class i is an anchor, a row that is certainly of
class i; the label probabilities there are row i of T. With noisy probabilities the surest row is an outlier, so the
paper takes the 97th percentile on data of ten classes.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from . import Data, EmpiricalRisk, StepState

KIND = "corrupted-label"
CITATION = (
    "Patrini, Rozza, Menon, Nock and Qu, Making deep neural networks robust to label noise: a loss correction "
    "approach, CVPR 2017 (arXiv:1609.03683)"
)
SETTINGS: dict[str, Any] = {"percentile": 97.0}
"""percentile: of each class's probabilities over the rows, at which its anchor is; 97 in the paper with ten classes and
100, the largest, with a hundred."""
SEARCH: dict[str, Any] = {"percentile": ["choice", 90.0, 97.0, 100.0]}
LIMITS = {"percentile": "above 0 and at most 100"}


class Algorithm(EmpiricalRisk):
    transition: Tensor
    """T, (K, C, C)."""

    def set_up(self) -> None:
        classes = self.about.outputs
        for percentile in self.hyperparameters.exact("percentile"):
            if percentile < 100 and 100 - percentile >= 100 / classes:
                raise ModelError(
                    f"setting percentile = {percentile:g}: with {classes} classes, one has about {100 / classes:.2g} % "
                    f"of the rows, so its anchor would be a row of another class: use {100 - 50 / classes:.4g} or more"
                )
        self.register_buffer("transition", torch.eye(classes).repeat(self.about.replicas, 1, 1))

    def stages(self, steps: int) -> tuple[int, ...]:
        if steps < 2:
            raise ModelError("a corrected loss is trained in two stages: give it 2 steps or more")
        return steps // 2, steps - steps // 2

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        probabilities = answer(*data.inputs).double().softmax(-1)
        transition = estimate_transition(probabilities, data.weight, self.hyperparameters.exact("percentile"))
        self.transition = transition.to(self.transition.dtype)
        return data, True

    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        return self.corrected(logits, target) if clock.stage else super().errors(logits, target, clock)

    def corrected(self, logits: Tensor, target: Tensor) -> Tensor:
        """The corrected loss of each row, (K, n), from logits (K, n, C)."""
        columns = self.transition.transpose(1, 2)
        ways = columns.gather(1, target[..., None].expand(-1, -1, logits.shape[-1]))
        return -(logits.log_softmax(-1) + ways.log()).logsumexp(-1)


def estimate_transition(probabilities: Tensor, weight: Tensor, percentile: list[float]) -> Tensor:
    """Transition matrices (K, C, C) by anchors, from probabilities (K, N, C) of rows that weigh (R, N).

    percentile: of each replica; class i's anchor is the first row, from the least to the most probable, up to which
    rows have that share of all weight. 100 is the most probable row. In the released code the anchor may be the row
    one rank further."""
    order = probabilities.argsort(dim=1, stable=True)
    total = weight[..., None].expand(probabilities.shape).gather(1, order).cumsum(1)
    share = torch.tensor(percentile, dtype=total.dtype, device=total.device).view(-1, 1, 1) / 100
    # Sums of weights differ from the share of their total by rounding alone: this is the tolerance.
    reached = total >= share * total[:, -1:] * (1 - 1e-12)
    anchors = order.gather(1, reached.int().argmax(1, keepdim=True))[:, 0]
    return probabilities.gather(1, anchors[..., None].expand(-1, -1, probabilities.shape[-1]))
