"""JoCoR: two networks with one joint loss, trained on the rows of a batch where it is smallest.

    l_i = (1 - a) (CE_1,i + CE_2,i) + a (KL(p_1,i | p_2,i) + KL(p_2,i | p_1,i))
    the mean of l over the R(t) = 1 - t_0 min(t / T, 1) of the batch with the smallest l

Wei, Feng, Chen and An, CVPR 2020, as in the released code, with T as a share of the steps as in co-teaching,
and t_0 a setting where theirs is the true rate of wrong labels. What is predicted is the first network's answer.
"""

from typing import Any

from torch import Tensor

from ..training.losses import cross_entropy
from . import Batch, StepState, co_teaching
from ._pair import Pair
from ._rows import compute_selected_mean, select_smallest

KIND = "corrupted-label"
CITATION = (
    "Wei, Feng, Chen and An, Combating noisy labels by agreement: a joint training method with co-regularization, "
    "CVPR 2020 (arXiv:2003.02752)"
)
SETTINGS: dict[str, Any] = {"forget": 0.2, "gradual_percent": 5.0, "agreement": 0.1}
"""forget, gradual_percent: as in co-teaching. agreement: a, the weight of the divergence between the networks (the
released code's default)."""
SEARCH: dict[str, Any] = {
    "forget": ["uniform", 0.05, 0.6],
    "gradual_percent": ["choice", 2.5, 5.0, 7.5],
    "agreement": ["choice", 0.05, 0.1, 0.5, 0.85],
}


def symmetric_kl_divergence(first: Tensor, second: Tensor) -> Tensor:
    """KL(p | q) + KL(q | p) of two networks' logits, (K, n, C): (K, n)."""
    left, right = first.log_softmax(-1), second.log_softmax(-1)
    return ((left.exp() - right.exp()) * (left - right)).sum(-1)


class Algorithm(co_teaching.Algorithm):
    def loss(self, network: Pair, batch: Batch, clock: StepState) -> Tensor:
        logits = [branch(*batch.inputs) for branch in (network.first, network.second)]
        errors = sum((cross_entropy(branch, batch.target) for branch in logits), start=logits[0].new_zeros(()))
        weight = self.hyperparameters.on("agreement", errors)
        joint = (1 - weight) * errors + weight * symmetric_kl_divergence(logits[0], logits[1])
        return compute_selected_mean(joint, select_smallest(joint.detach(), self.remembered(clock, batch)), batch)
