"""D-BAT: an ensemble whose members agree on training rows and disagree on shifted rows.

Members are trained in turn. Member m minimises

    CE + alpha * mean over earlier members i of E_T[-log(p_i (1 - p_m) + (1 - p_i) p_m + 1e-7)]

where T are unlabelled shifted rows, and p_i and p_m the probabilities that i, frozen, and m give to the class that i
predicts (Pagliardini et al., algorithm 1). The prediction is the mean of the members' probabilities.
Using the test rows as the shifted rows is their transductive variant (ood_is_test), and is declared in `TOUCHES`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from . import Batch, StepState, deep_ensembles
from ._plain import use_evaluation_mode
from ._shifted import get_shifted_inputs

KIND = "domain"
CITATION = (
    "Pagliardini, Jaggi, Fleuret and Karimireddy, Agree to disagree: diversity through disagreement for better "
    "transferability, ICLR 2023 (arXiv:2202.04414)"
)
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {"members": 2, "alpha": 1.0, "weight_decay": 5e-4}
"""members: of the ensemble, each with an equal share of the steps. alpha: the weight of disagreement."""
SEARCH: dict[str, Any] = {"alpha": ["log10", -4, 0]}


class Algorithm(deep_ensembles.Algorithm):
    additive = False

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        member, risk = network[clock.stage], super().loss(network, batch, clock)
        if clock.stage == 0:
            return risk
        probabilities = member(*get_shifted_inputs(batch)).softmax(-1)
        losses = [self._disagreement(network[earlier], probabilities, batch) for earlier in range(clock.stage)]
        disagreement: Tensor = self.hyperparameters["alpha"] * torch.stack(losses).mean(0)
        return risk + disagreement

    def _disagreement(self, earlier: nn.Module, probabilities: Tensor, batch: Batch) -> Tensor:
        with torch.no_grad(), use_evaluation_mode(earlier, self.rng):
            theirs, chosen = earlier(*get_shifted_inputs(batch)).softmax(-1).max(-1)
        p = probabilities.gather(-1, chosen[..., None])[..., 0]
        return -torch.log(theirs * (1 - p) + (1 - theirs) * p + 1e-7).mean(1)
