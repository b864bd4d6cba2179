"""EATA: Tent on test rows that are confident and not redundant, with a penalty on changes of the adapted parameters.

    mean over S of e^(E_0 - H(x)) H(x)  +  beta sum_i F_i (w_i - w_i^0)^2,
    S = {x: H(x) < E_0 and |cos(p(x), m)| < epsilon},   m <- 0.9 m + 0.1 mean over S of p(x)

Niu et al., ICML 2022, equations 2 to 9. H is the entropy of the softmax p(x), E_0 a share of log(classes), m the mean
of the probabilities that were learned from: of the first batch in which a row is sure, all sure rows are, and m is
theirs.
One step of gradient descent with momentum 0.9 on the scales and shifts of the normalisation layers after each answer,
none where S is empty. F_i is the mean over batches of 64 of the squared gradient of the cross-entropy to the network's
own answers, of up to `fisher_rows` training rows (in-distribution test rows there), each batch normalised by its own
moments; of a batch's mean loss, as in the released code. beta = 0 is the paper's ETA. Known trap avoided: the released
`reset` keeps m.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training.losses import compute_gradients, cross_entropy
from . import Build, Data
from ._adaptive import OnlineAdaptation, OnlineMomentum, entropy
from ._norms import use_batch_moments
from ._plain import use_evaluation_mode
from ._weights import RunningMean

KIND = "domain"
CITATION = (
    "Niu, Wu, Zhang, Chen, Zheng, Zhao and Tan, Efficient test-time model adaptation without forgetting, ICML 2022 "
    "(arXiv:2204.02610)"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {
    "adaptive_lr": 5e-3,
    "sure": 0.4,
    "redundant": 0.4,
    "anchoring": 1.0,
    "fisher_rows": 2000,
}
"""adaptive_lr: of the steps while predicting. sure: E_0 over log(classes). redundant: epsilon. anchoring: beta. Those
of the paper on CIFAR-10; on ImageNet 2.5e-4, 0.4, 0.05 and 2000. fisher_rows: rows that F is taken from."""
SEARCH: dict[str, Any] = {
    "adaptive_lr": ["log10", -4, -2],
    "redundant": ["choice", 0.05, 0.4, 0.8],
    "anchoring": ["choice", 0.0, 1.0, 2000.0],
}

BATCH = 64
"""Rows in the batches of the squared gradients."""


class Algorithm(OnlineAdaptation):
    optimiser_class = OnlineMomentum
    optimiser: OnlineMomentum
    before: Tensor
    """m, (K, classes)."""
    begun: Tensor
    """Whether any row was learned from, (K,) bool."""

    def assemble(self, build: Build) -> Any:
        network, like = super().assemble(build), self.hyperparameters["lr"]
        parameters = self.adapted_parameters(network)
        self.fisher = RunningMean([torch.zeros_like(parameter) for parameter in parameters]).to(like)
        self.register_buffer("before", like.new_zeros(len(like), self.about.outputs))
        self.register_buffer("begun", torch.zeros(len(like), dtype=torch.bool, device=like.device))
        return network

    def prepare(self, network: Any, data: Data) -> None:
        super().prepare(network, data)
        parameters = self.adapted_parameters(network)
        self.fisher.take([torch.zeros_like(parameter) for parameter in parameters])
        rows = min(len(data), max(1, self.hyperparameters["fisher_rows"]))
        # Evenly spaced, and every n-th of them in one batch: rows of one environment or class may be adjacent.
        chosen = torch.arange(rows, device=data.lengths.device) * len(data) // rows
        pieces = max(1, rows // BATCH)
        with use_evaluation_mode(network, self.rng), use_batch_moments(network, 0.0), torch.enable_grad():
            for piece in range(pieces):
                inputs = [x[chosen[piece::pieces]] for x in data.inputs]
                logits = network(*(x.expand(len(self.ready), *x.shape) for x in inputs))
                grads = compute_gradients(cross_entropy(logits, logits.argmax(-1)).mean(1), parameters)
                for information, gradient in zip(self.fisher.values, grads, strict=True):
                    information += gradient.square() / pieces

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        parameters, settings = self.adapted_parameters(network), self.hyperparameters
        most = settings["sure"] * math.log(self.about.outputs)
        with torch.enable_grad(), use_batch_moments(network, 0.0):
            logits: Tensor = network(*inputs)
            uncertainty = entropy(logits)
            p, h = logits.detach().softmax(-1), uncertainty.detach()
            similarity = F.cosine_similarity(self.before[:, None], p, dim=-1).abs()
            learned = (h < most[:, None]) & (~self.begun[:, None] | (similarity < settings["redundant"][:, None]))
            count = learned.sum(1)
            share = (most[:, None] - h).exp() * learned / count.clamp(min=1)[:, None]
            risk = (share * uncertainty).sum(1) + settings["anchoring"] * self._moved(parameters)
            grads = compute_gradients(risk, parameters)
        some = count > 0
        self.optimiser.step(parameters, grads, settings["adaptive_lr"], some)
        mean = (p * learned[..., None]).sum(1) / count.clamp(min=1)[:, None]
        mean = torch.where(self.begun[:, None], 0.9 * self.before + 0.1 * mean, mean)
        self.before.copy_(torch.where(some[:, None], mean, self.before))
        self.begun |= some
        return logits.detach()

    def _moved(self, parameters: list[Tensor]) -> Tensor:
        """sum_i F_i (w_i - w_i^0)^2, (K,)."""
        parts = zip(self.fisher.values, parameters, self.start.values, strict=True)
        return torch.stack([(f * (p - start).square()).flatten(1).sum(1) for f, p, start in parts]).sum(0)

    def reset(self, network: Any) -> None:
        super().reset(network)
        self.before.zero_()
        self.begun.zero_()
