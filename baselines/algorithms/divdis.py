"""Diversify and disambiguate: heads that agree on labelled rows and differ as much as possible on shifted rows.

H linear heads on one feature extractor minimise, on labelled batches S and unlabelled shifted ones T,

    mean over h of CE_S(h) + diversity * mean over pairs h < g of MI_T(h, g) + prior * mean over h of
    KL(p_T(h) || p_S(y))

where MI_T(h, g) is the mutual information of two heads' predictions, their joint distribution being the mean over T of
the outer product of their probabilities, and p_T(h) the mean prediction (Lee et al., section 3). p_S is the training
labels' frequencies; the released code can also compare with the heads' own mean prediction on labelled rows. The paper
then chooses a head by the labels of a few shifted rows on which the heads disagree; here `head` is a setting, so that
such labels decide only where a protocol's selection rule reads them. Known trap: the released mean over pairs skips
pairs whose information is exactly 0.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...core.errors import ModelError
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, StepState
from ._shifted import get_shifted_inputs

KIND = "domain"
CITATION = (
    "Lee, Yao and Finn, Diversify and disambiguate: out-of-distribution robustness via disagreement, ICLR 2023 "
    "(arXiv:2202.03418)"
)
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {"heads": 2, "head": 0, "diversity": 10.0, "prior": 10.0}
"""head: the one that predicts, from 0. diversity and prior: weights of the mutual information, and of the divergence
from the training labels' frequencies."""
SEARCH: dict[str, Any] = {
    "head": ["choice", 0, 1],
    "diversity": ["choice", 1.0, 10.0, 100.0],
    "prior": ["choice", 0.0, 10.0],
}


class Algorithm(BaseAlgorithm):
    frequencies: Tensor

    def set_up(self) -> None:
        head, heads = self.hyperparameters["head"], self.hyperparameters["heads"]
        if not (heads >= 2 and 0 <= head < heads):
            raise ModelError(f"divdis: setting head = {head} of {heads} heads: use 2 or more, the first is 0")
        data = self.about.data
        hot = F.one_hot(data.target[0], self.about.outputs).to(data.weight.dtype)
        self.register_buffer(
            "frequencies", (data.weight[0] @ hot / data.weight[0].sum()).repeat(self.about.replicas, 1)
        )

    def assemble(self, build: Build) -> Any:
        """The recipe's network with a head as wide as H: one below the other."""
        network = build("weights")
        heads = [network.head, *(build(f"head/{index}").head for index in range(1, self.hyperparameters["heads"]))]
        network.head.weight = nn.Parameter(torch.cat([head.weight for head in heads], dim=1).detach())
        if network.head.bias is not None:
            network.head.bias = nn.Parameter(torch.cat([head.bias for head in heads], dim=1).detach())
        return network

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        heads = self._heads(network, batch.inputs)
        risks = [average_over_batch(cross_entropy(head, batch.target), batch) for head in heads.unbind(2)]
        probabilities = self._heads(network, get_shifted_inputs(batch)).softmax(-1)
        information: Tensor = self.hyperparameters["diversity"] * compute_pairwise_information(probabilities)
        apart: Tensor = self.hyperparameters["prior"] * kl_divergence(
            probabilities.mean(1), self.frequencies[:, None]
        ).mean(1)
        return torch.stack(risks).mean(0) + information + apart

    def _heads(self, network: Any, inputs: tuple[Tensor, ...]) -> Tensor:
        """The logits of all heads, (K, n, H, classes)."""
        logits: Tensor = network(*inputs)
        return logits.view(*logits.shape[:-1], self.hyperparameters["heads"], -1)

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        return self._heads(network, inputs)[:, :, self.hyperparameters["head"]]


def compute_pairwise_information(probabilities: Tensor) -> Tensor:
    """The mutual information of two heads' predictions, the mean over pairs: (K, n, H, classes) to (K,)."""
    replicas, rows, heads, classes = probabilities.shape
    flat = probabilities.flatten(2)
    joint = (flat.transpose(1, 2) @ flat / rows).view(replicas, heads, classes, heads, classes)
    own = probabilities.mean(1)
    apart = own[:, :, :, None, None] * own[:, None, None]
    first, second = torch.triu_indices(heads, heads, 1, device=flat.device)
    # Indexed apart from each other, the pairs' axis comes first.
    return kl_divergence(joint[:, first, :, second].flatten(2), apart[:, first, :, second].flatten(2)).mean(0)


def kl_divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(one || other) over the last axis."""
    least = torch.finfo(p.dtype).tiny
    return (p * (p.clamp(min=least).log() - q.clamp(min=least).log())).sum(-1)
