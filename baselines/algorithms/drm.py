"""Domain-specific risk minimisation: one head per environment and one for all, averaged in prediction by their
confidence.

    min  mean over e of [CE(h_e(z), y) + CE(h(z), y)] / 2 on the rows of e        z = features
    prediction: sum over e of w_e softmax(h_e(z)),  w_e in proportion to H_e^-gamma,  H_e the entropy of softmax(h_e(z))

and with gamma < 0 the one head, h among them, whose entropy is least. Zhang et al., KDD 2023. Traps of the released
code that are avoided: gamma is chosen there, for each data set, by accuracy on rows of the test environment, here it is
a setting like any other; its adaptation by pseudo-labels, chosen in the same way, is left out.
"""

from typing import Any

import torch
from torch import Tensor

from ..layers.linear import Linear
from ..training.losses import average_over_batch, cross_entropy, group_by_environment
from . import BaseAlgorithm, Batch, Build, StepState

KIND = "domain"
CITATION = "Zhang et al., Domain-specific risk minimization for domain generalization, KDD 2023 (arXiv:2208.08661)"
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"certainty": 1.0, "batch_size": 32}
"""certainty: gamma."""
SEARCH: dict[str, Any] = {"certainty": ["choice", -1.0, 0.0, 0.5, 1.0, 5.0]}

LEAST_ENTROPY = 1e-12
"""A head that is quite certain must not have a weight that is not a number."""


class Algorithm(BaseAlgorithm):
    by_environment = True

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        outputs = self.about.environments * self.about.outputs
        network.environment_heads = self.about.each(lambda: Linear(network.width, outputs), "heads")
        return network

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        features = network.encode(network.embed(*batch.inputs))
        pooled = average_over_batch(cross_entropy(network.head(features), batch.target), batch)
        own = self._of_environments(network, group_by_environment(features, batch)).flatten(1, 2)
        return (pooled + average_over_batch(cross_entropy(own, batch.target), batch)) / 2

    def _of_environments(self, network: Any, features: Tensor) -> Tensor:
        """Each environment's own head on its own rows: features (K, E, m, width) to logits (K, E, m, classes)."""
        environments = features.shape[1]
        weight = network.environment_heads.weight.unflatten(1, (environments, -1)).flatten(0, 1)
        bias = network.environment_heads.bias.unflatten(1, (environments, 1, -1)).flatten(0, 1)
        logits = torch.baddbmm(bias, features.flatten(0, 1), weight.transpose(1, 2))
        return logits.view(*features.shape[:3], -1)

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        """The logarithms of the averaged probabilities, (K, n, classes)."""
        features = network.encode(network.embed(*inputs))
        own = network.environment_heads(features).unflatten(-1, (self.about.environments, -1)).log_softmax(-1)
        every = torch.cat([own, network.head(features)[..., None, :].log_softmax(-1)], dim=-2)
        entropy = -(every.exp() * every).sum(-1)
        gamma = self.hyperparameters.on("certainty", entropy)
        weights = (-gamma * entropy[..., :-1].clamp(min=LEAST_ENTROPY).log()).log_softmax(-1)
        mixed = torch.logsumexp(weights[..., None] + own, dim=-2)
        surest = every.gather(-2, entropy.argmin(-1)[..., None, None].expand(*every.shape[:-2], 1, every.shape[-1]))
        return torch.where(gamma < 0, surest[..., 0, :], mixed)
