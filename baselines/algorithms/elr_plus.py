"""ELR+: early-learning regularisation of two networks, each with targets from the other's averaged weights.

    of each network:  CE(f(x'), y') + r(t) l mean_i log(1 - <p_i, q_i>)
    t_i <- b t_i + (1 - b) softmax g(x_i),   g the other network with a running average of its weights
    x' = s x_i + (1 - s) x_j, y' and q likewise of labels and of t;   s = max(u, 1 - u), u ~ Beta(alpha, alpha)
    average <- a average + (1 - a) weights,   a = slowness e^(-5 (1 - step / rise)^2) until the rise is over

Liu et al., NeurIPS 2020, section 4.3, as in the released code: t moves by the rows before they are mixed, p is that of
the mixed ones, within [1e-4, 1 - 1e-4]; g normalises batches by their own moments; both networks' logits are averaged
to predict. Otherwise than there: both networks move in the same step and see the same rows, not in turns of an epoch;
averages begin with the weights, not with others; the rises, which are steps there, are shares of the steps; rows are
mixed after the network's `embed`; a trick of the code for 100 classes (labels times t, used as labels) is left out.
"""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..replicas.rng import draw_permutations
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, MakeOptimiserStep, OptimiserSteps, StepState
from ._pair import Pair, build_pair, compute_joint_logits
from ._rows import read_entries, write_entries
from .dividemix import blend_rows, draw_mixing_shares
from .elr import LEAST
from .mixup import weight_by_partners

KIND = "corrupted-label"
CITATION = (
    "Liu, Niles-Weed, Razavian and Fernandez-Granda, Early-learning regularization prevents memorization of noisy "
    "labels, NeurIPS 2020 (arXiv:2007.00151)"
)
SETTINGS: dict[str, Any] = {
    "strength": 3.0,
    "keep": 0.7,
    "alpha": 1.0,
    "slowness": 0.997,
    "rise_percent": 51.0,
    "ramp_percent": 0.0,
}
"""strength, keep: l and b (3 and 0.7 on CIFAR-10, 7 and 0.9 on CIFAR-100, 1 and 0.9 under asymmetric noise). alpha: of
the Beta distribution. slowness: a in the end. rise_percent: of the steps, in which a rises to it (40,000 of 78,200 on
CIFAR-10). ramp_percent: of the steps, in which r rises to 1 in the same way (0, and 41 on CIFAR-100)."""
SEARCH: dict[str, Any] = {"strength": ["choice", 1.0, 3.0, 5.0, 7.0, 10.0], "keep": ["choice", 0.5, 0.7, 0.9, 0.99]}
LIMITS = {"alpha": "above 0"}


def compute_ramp(step: int, over: Tensor) -> Tensor:
    """e^(-5 (1 - step / over)^2), and 1 from `over` steps on; over: (K,), not below 0."""
    left = 1 - (step / over.clamp(min=torch.finfo(over.dtype).tiny)).clamp(max=1)
    return (-5 * left.square()).exp()


class Algorithm(BaseAlgorithm):
    remembers = True
    believed: Tensor

    def set_up(self) -> None:
        self.register_buffer("believed", torch.zeros(self.about.replicas, 2, len(self.about.data), self.about.outputs))

    def assemble(self, build: Build) -> Pair:
        network = build_pair(build)
        self.slow = copy.deepcopy(network).requires_grad_(False).to(self.hyperparameters["lr"])
        return network

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        return {"main": optimiser_step(list(network.parameters()), "lr")}

    def loss(self, network: Pair, batch: Batch, clock: StepState) -> Tensor:
        return self._of_one(network.first, self.slow.second, batch, clock, 0) + self._of_one(
            network.second, self.slow.first, batch, clock, 1
        )

    def _of_one(self, current: Any, other: Any, batch: Batch, clock: StepState, which: int) -> Tensor:
        """The loss of the first (0) or the second (1) network, (K,)."""
        order = draw_permutations(clock.draw(f"pairs of {which}"), batch.target.shape[1])
        share = draw_mixing_shares(self.hyperparameters, clock.draw(f"shares of {which}"))
        logits = current.head(current.encode(blend_rows(current.embed(*batch.inputs), order, share)))
        label = F.one_hot(batch.target, logits.shape[-1]).to(logits.dtype)
        believed = blend_rows(self._believed(other, batch, which), order, share)
        p = logits.softmax(-1).clamp(LEAST, 1 - LEAST)
        ramp = compute_ramp(clock.step + 1, self.hyperparameters["ramp_percent"] * clock.steps / 100)
        regulariser = torch.log1p(-(p * believed).sum(-1))
        weight = self.hyperparameters["strength"] * ramp
        errors = cross_entropy(logits, blend_rows(label, order, share)) + weight[:, None] * regulariser
        return average_over_batch(errors, weight_by_partners(batch, order))

    @torch.no_grad()
    def _believed(self, other: Any, batch: Batch, which: int) -> Tensor:
        """What a network's targets are after the batch was seen, (K, n, classes)."""
        table = self.believed[:, which]
        keep = self.hyperparameters.on("keep", table)
        seen: Tensor = other(*batch.inputs).softmax(-1)
        target = keep * read_entries(table, batch.rows) + (1 - keep) * seen
        write_entries(table, batch.rows, target)
        return target

    @torch.no_grad()
    def after(self, network: Pair, clock: StepState) -> None:
        over = self.hyperparameters["rise_percent"] * clock.steps / 100
        keep = self.hyperparameters["slowness"] * compute_ramp(clock.step + 2, over)
        for slow, own in zip(self.slow.parameters(), network.parameters(), strict=True):
            slow.copy_(own.lerp(slow, keep.view(-1, *[1] * (own.ndim - 1))))

    def logits(self, network: Pair, *inputs: Tensor) -> Tensor:
        """The mean of both networks' logits, (K, n, classes)."""
        return compute_joint_logits(network, *inputs)
