"""Deep CORAL: the means and covariances of the features of labelled and of shifted rows are aligned.

    CE + penalty x [ |mu_S - mu_T|^2 / d + |C_S - C_T|^2 / d^2 ]

S are a batch's labelled rows, T as many inputs of the shifted test rows, without labels. Sun and Saenko, ECCV workshops
2016, in the form of WILDS (Sagawa et al., ICLR 2022, arXiv:2112.05090): the paper has the covariances alone, divided by
4 d^2 in place of d^2. All labelled rows are one side, as in the paper; WILDS compares each pair of domains. Without
shifted rows, between training environments, it is the algorithm `coral`.
"""

from typing import Any

from torch import Tensor

from ..training.losses import average_over_batch, compute_task_loss
from . import BaseAlgorithm, Batch, StepState
from ._shifted import encode_both_domains

KIND = "domain"
CITATION = (
    "Sun and Saenko, Deep CORAL: correlation alignment for deep domain adaptation, ECCV workshops 2016 "
    "(arXiv:1607.01719)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {"penalty": 1.0}
"""penalty: of the two terms. WILDS uses .1, 1 or 10."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -1, 1]}


def coral_loss(source: Tensor, target: Tensor) -> Tensor:
    """Between features (K, n, d) and (K, m, d): (K,)."""
    means, covariances = [], []
    for features in (source, target):
        middle = features.mean(1, keepdim=True)
        centred = features - middle
        means.append(middle[:, 0])
        covariances.append(centred.transpose(1, 2) @ centred / max(1, features.shape[1] - 1))
    return (means[0] - means[1]).square().mean(1) + (covariances[0] - covariances[1]).square().mean((1, 2))


class Algorithm(BaseAlgorithm):
    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        source, target = encode_both_domains(network, batch)
        risk = average_over_batch(compute_task_loss(network.head(source), batch.target), batch)
        return risk + self.hyperparameters["penalty"] * coral_loss(source, target)
