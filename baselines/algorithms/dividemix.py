"""DivideMix-lite: two networks treat rows with probably wrong labels as unlabelled and learn from them with MixMatch.

After a warm-up of cross-entropy, then once an epoch: a mixture of two Gaussians is fitted to a network's losses on all
rows, and w_i is the posterior that row i comes from the lower one. The *other* network uses rows with
w_i > `threshold` as labelled, and the rest as unlabelled. In a batch, for each network:

    labelled row:    target = sharpened(w_i y_i + (1 - w_i) p_i)          (co-refinement, p its own answer)
    unlabelled row:  target = sharpened((p_i + p'_i) / 2)                 (co-guessing, both networks' answers)
    both are mixed with the rows of the shuffled batch: l x + (1 - l) x',  l = max(b, 1 - b), b ~ Beta(alpha, alpha)
    loss = CE of labelled + unlabelled(t) mean squared error of unlabelled + sum_c 1/C log((1/C) / mean p_c)

Li et al., ICLR 2020, Algorithm 1 and sections 3.1 and 3.2; unlabelled(t) rises from 0 over a ramp. The squared error
is the mean over classes, as in the released code and in MixMatch. Lite, that is, otherwise than there: no augmented
views, so p is one answer; a batch is drawn from all rows and divided, instead of equal batches of both sorts; the
warm-up and the ramp (10 and 16 of 300 epochs there) are shares of the steps, since in a budget of steps the epochs of
large data never end; both networks move in the same step, not in turns of an epoch; inputs are mixed after the
network's `embed`; both networks answer in training mode (there the other one is in evaluation); the penalty on
confidence in the warm-up of asymmetric noise is left out, since the kind of noise is not known.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..replicas.hyperparameters import Hyperparameters
from ..replicas.rng import draw_beta, draw_permutations
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Batches, Build, OptimiserSteps, StepState
from ._pair import Pair, build_pair, compute_joint_logits
from ._plain import compute_shared_logits
from ._rows import compute_selected_mean, read_entries

KIND = "corrupted-label"
CITATION = (
    "Li, Socher and Hoi, DivideMix: learning with noisy labels as semi-supervised learning, ICLR 2020 "
    "(arXiv:2002.07394)"
)
SETTINGS: dict[str, Any] = {
    "warm_percent": 10,
    "ramp_percent": 15.0,
    "threshold": 0.5,
    "temperature": 0.5,
    "alpha": 4.0,
    "unlabelled": 25.0,
}
"""warm_percent: of all steps, those of cross-entropy. ramp_percent: of all steps, those in which the unlabelled rows'
weight rises to `unlabelled` (0, 25, 50 or 150 in the paper, the more noise the more). threshold: of w. temperature: of
sharpening. alpha: of the Beta distribution."""
SEARCH: dict[str, Any] = {
    "unlabelled": ["choice", 0.0, 25.0, 50.0, 150.0],
    "threshold": ["choice", 0.5, 0.6],
    "warm_percent": ["choice", 5, 10, 20],
}
LIMITS = {"warm_percent": "at least 0 and below 100"}

ROUNDS = 10
"""Iterations of Lloyd's algorithm, and of expectation maximisation, for the mixture of two Gaussians: a fixed number,
so that no replica waits for another's convergence. DivideMix's released code stops at ten."""
FLOOR = 5e-4
"""Added to the variances, as in that code."""


class Algorithm(BaseAlgorithm):
    clean: Tensor
    own: Tensor

    def set_up(self) -> None:
        self.warm = self.about.steps * self.hyperparameters["warm_percent"] // 100
        self.register_buffer("clean", torch.ones(self.about.replicas, 2, len(self.about.data)))
        self.register_buffer("own", torch.arange(self.about.replicas))

    def assemble(self, build: Build) -> Pair:
        return build_pair(build)

    def update(self, network: Pair, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        if self._begins(clock.step):
            self.divide(network)
        return super().update(network, batches, clock, optimiser_steps)

    def epoch(self, step: int) -> float:
        """Epochs before a step."""
        rows = len(self.about.data)
        return step * (self.hyperparameters["batch_size"] or rows) / rows

    def _begins(self, step: int) -> bool:
        """Whether the rows are divided before this step: after the warm-up, and then in each epoch's first one."""
        return step == self.warm or (step > self.warm and int(self.epoch(step)) > int(self.epoch(step - 1)))

    @torch.no_grad()
    def divide(self, network: Pair) -> None:
        """How likely each row's label is right, by the losses of the first and of the second network: `clean`
        (K, 2, N)."""
        losses = torch.stack([self._losses(member) for member in (network.first, network.second)], dim=1)
        least, most = losses.amin(-1, keepdim=True), losses.amax(-1, keepdim=True)
        scaled = (losses - least) / (most - least).clamp(min=torch.finfo(losses.dtype).tiny)
        self.clean = compute_lower_posterior(scaled.flatten(0, 1)).view_as(losses).to(losses.dtype)

    def _losses(self, member: Any) -> Tensor:
        """One network's cross-entropy on all training rows in evaluation, (K, N)."""
        data = self.about.data
        target = data.target if len(data.target) == 1 else data.target[self.own]
        logits = compute_shared_logits(member, data, len(self.own), self.rng)
        return cross_entropy(logits, target.expand(len(self.own), -1))

    def loss(self, network: Pair, batch: Batch, clock: StepState) -> Tensor:
        if clock.step < self.warm:
            logits = (branch(*batch.inputs) for branch in (network.first, network.second))
            first, second = (average_over_batch(cross_entropy(branch, batch.target), batch) for branch in logits)
            return first + second
        return self._mixed(network, batch, clock, 0) + self._mixed(network, batch, clock, 1)

    def _mixed(self, network: Pair, batch: Batch, clock: StepState, which: int) -> Tensor:
        """The loss of the first (0) or the second (1) network, (K,)."""
        current, other = (network.second, network.first) if which else (network.first, network.second)
        x = current.embed(*batch.inputs)
        clean = read_entries(self.clean[:, 1 - which], batch.rows)
        labelled = clean > self.hyperparameters.on("threshold", clean)
        with torch.no_grad():
            own = current.head(current.encode(x)).softmax(-1)
            both = (own + other(*batch.inputs).softmax(-1)) / 2
            target = self._targets(batch.target, clean[..., None], labelled[..., None], own, both)
        share = draw_mixing_shares(self.hyperparameters, clock.draw(f"shares of {which}"))
        order = draw_permutations(clock.draw(f"pairs of {which}"), x.shape[1])
        logits = current.head(current.encode(blend_rows(x, order, share)))
        target = blend_rows(target, order, share)
        p: Tensor = logits.softmax(-1)
        supervised = compute_selected_mean(cross_entropy(logits, target), labelled, batch)
        guessed = compute_selected_mean((p - target).square().mean(-1), ~labelled, batch)
        level = -(p.mean(1) * p.shape[-1]).log().mean(-1)
        return supervised + self._unlabelled(clock) * guessed + level

    def _targets(self, label: Tensor, clean: Tensor, labelled: Tensor, own: Tensor, both: Tensor) -> Tensor:
        given = F.one_hot(label, own.shape[-1]).to(own.dtype)
        refined = clean * given + (1 - clean) * own
        # Sharpened as MixMatch does: Berthelot et al., NeurIPS 2019 (arXiv:1905.02249), equation 7.
        raised = torch.where(labelled, refined, both) ** (1 / self.hyperparameters.on("temperature", own))
        return raised / raised.sum(-1, keepdim=True)

    def _unlabelled(self, clock: StepState) -> Tensor:
        """The weight of unlabelled rows, (K,)."""
        over = self.hyperparameters["ramp_percent"] * clock.steps / 100
        risen = ((clock.step - self.warm) / over.clamp(min=torch.finfo(self.hyperparameters.dtype).tiny)).clamp(max=1)
        return risen * self.hyperparameters["unlabelled"]

    def logits(self, network: Pair, *inputs: Tensor) -> Tensor:
        """The mean of both networks' logits, (K, n, classes)."""
        return compute_joint_logits(network, *inputs)


def draw_mixing_shares(hyperparameters: Hyperparameters, keys: Tensor) -> Tensor:
    """max(b, 1 - b) of each replica, b drawn by its key (K,) from Beta(alpha, alpha): (K,)."""
    drawn = [draw_beta(keys[index : index + 1], (), a) for index, a in enumerate(hyperparameters.exact("alpha"))]
    b = torch.cat(drawn).to(hyperparameters.dtype)
    return torch.maximum(b, 1 - b)


def blend_rows(values: Tensor, order: Tensor, share: Tensor) -> Tensor:
    """Each row of values (K, n, ..), `share` (K,) of it, with the row that `order` (K, n) puts in its place."""
    part = share.view(-1, *[1] * (values.ndim - 1))
    return part * values + (1 - part) * read_entries(values, order)


def compute_lower_posterior(values: Tensor) -> Tensor:
    """The posterior probability that each value (K, N) comes from the component of the lower mean, (K, N) float64.

    The responsibilities at first are those of 2-means, begun at the least and the largest value."""
    x = values.double()
    share = _cluster_in_two(x)
    for _ in range(ROUNDS):
        share = _run_e_step(x, *_run_m_step(x, share))
    fitted = _run_m_step(x, share)
    lower = fitted[1].argmin(1)[:, None, None].expand(-1, x.shape[1], 1)
    return _run_e_step(x, *fitted).gather(2, lower)[..., 0]


def _cluster_in_two(x: Tensor) -> Tensor:
    """Which of two clusters each value (K, N) belongs to, (K, N, 2)."""
    centres = torch.stack([x.amin(1), x.amax(1)], dim=1)
    for _ in range(ROUNDS):
        centres = _run_m_step(x, _assign_nearest(x, centres))[1]
    return _assign_nearest(x, centres)


def _assign_nearest(x: Tensor, centres: Tensor) -> Tensor:
    upper = (x > centres.mean(1, keepdim=True)).double()
    return torch.stack([1 - upper, upper], dim=-1)


def _run_m_step(x: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, means and variances, (K, 2) each, for responsibilities (K, N, 2)."""
    # A component without rows still has finite parameters.
    rows = share.sum(1) + 10 * torch.finfo(share.dtype).eps
    mean = (share * x[..., None]).sum(1) / rows
    variance = (share * (x[..., None] - mean[:, None]).square()).sum(1) / rows + FLOOR
    return rows / rows.sum(1, keepdim=True), mean, variance


def _run_e_step(x: Tensor, weight: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Responsibilities (K, N, 2) under the mixture."""
    distance = (x[..., None] - mean[:, None]).square() / variance[:, None]
    return (weight.log()[:, None] - (distance + variance.log()[:, None]) / 2).softmax(-1)
