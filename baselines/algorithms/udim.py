"""Unknown domain inconsistency minimisation (UDIM): inputs are perturbed to where the loss is sharp, and inconsistency
there is penalised.

    x~ = x + r d / |d|,  d = grad_x [CE(x) + rho |grad_theta CE(x)|]
    step along  grad CE(x) at theta + rho g / |g|  +  lambda grad [ mean (v(x) - v(x~))^2 / 4 + mean g_i(x~)^2 ]

g_i is the gradient of row i's cross-entropy by the head's weights and biases, v its variance over the batch in each
coordinate. The first part of training makes sharpness-aware steps (SAM) alone. Shin et al., ICLR 2024; both
inconsistencies over the whole batch, as its script for a single source has them. Traps of the released code that are
avoided:
- d is normalised over the batch, coordinate by coordinate, so that a row moves according to what else was drawn: here
  each row moves by r. Its r = 10 belongs to that, and is of no use here;
- the variance over x~ is computed around the mean over x;
- it starts from the best checkpoint, by validation accuracy, of another run of SAM: here from SAM's last step.
The mean of g_i^2 is over the head's weights and biases together; in the released code each has a mean of its own, so
that biases, which are few, count for more (0.52 where it is 0.31 here, on an example).

Not compared with released code: this implementation differs from the released code in the four points of the docstring,
so that steps differ.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..training.losses import average_over_batch, average_per_replica, compute_gradients, cross_entropy
from ..training.optimiser_step import broadcast_values
from . import BaseAlgorithm, Batch, Batches, Build, OptimiserSteps, StepState
from ._head import compute_mean_products, read_head_shape
from .fishr import compute_gradient_variances

KIND = "domain"
CITATION = (
    "Shin et al., Unknown domain inconsistency minimization for domain generalization, ICLR 2024 (arXiv:2403.07329)"
)
SETTINGS: dict[str, Any] = {"sharpness": 0.05, "reach": 1.0, "inconsistency": 1.0, "sam_percent": 20}
"""sharpness: rho. reach: r, in units of the embedded input. inconsistency: lambda. sam_percent: of all steps, in which
SAM alone is used."""
SEARCH: dict[str, Any] = {
    "sharpness": ["choice", 0.01, 0.02, 0.05, 0.1],
    "reach": ["choice", 0.1, 1.0, 10.0],
    "inconsistency": ["choice", 0.1, 1.0, 10.0],
}

LEAST_NORM = 1e-12


def compute_gradient_norms(gradients: Sequence[Tensor]) -> Tensor:
    """The norm of each replica's gradient, (K,); differentiable where it is 0."""
    squares = torch.stack([gradient.flatten(1).square().sum(1) for gradient in gradients]).sum(0)
    return squares.clamp(min=LEAST_NORM**2).sqrt()


class Algorithm(BaseAlgorithm):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        read_head_shape(network)
        return network

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        return average_over_batch(cross_entropy(network(*batch.inputs), batch.target), batch)

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        before, optimiser_step = clock.steps * self.hyperparameters["sam_percent"] // 100, optimiser_steps["main"]
        if clock.step < before:
            return super().update(network, batches, clock, optimiser_steps)
        if clock.step == before:
            optimiser_step.restart()
        ((batch, _),) = batches()
        parameters: list[Tensor] = list(optimiser_step.parameters)
        risk, slopes, moved = self.climbed(network, batch, parameters)
        punished = compute_gradients(self.inconsistency(network, batch, moved), parameters)
        weight = self.hyperparameters["inconsistency"]
        flat = self.sharp_slopes(network, batch, parameters, slopes, clock)
        steps = [own + broadcast_values(weight, own) * other for own, other in zip(flat, punished, strict=True)]
        # torch's fused optimisers read a gradient in the order of its memory, whatever its strides say.
        optimiser_step.follow(steps)
        return risk

    def climbed(self, network: Any, batch: Batch, parameters: list[Tensor]) -> tuple[Tensor, list[Tensor], Tensor]:
        """The risk (K,), its gradients by the parameters, and the inputs x~, as `embed` gives them."""
        x = network.embed(*batch.inputs)
        x = x if x.requires_grad else x.detach().requires_grad_()
        risk = average_over_batch(cross_entropy(network.head(network.encode(x)), batch.target), batch)
        slopes = compute_gradients(risk, parameters, create_graph=True)
        sharp = risk + self.hyperparameters["sharpness"] * compute_gradient_norms(slopes)
        (uphill,) = torch.autograd.grad(sharp.sum(), x)
        lengths = uphill.flatten(2).norm(dim=-1).clamp(min=LEAST_NORM)
        step = (self.hyperparameters["reach"][:, None] / lengths).view(*lengths.shape, *[1] * (x.ndim - 2))
        return risk.detach(), [slope.detach() for slope in slopes], (x + step * uphill).detach()

    def sharp_slopes(
        self, network: Any, batch: Batch, parameters: list[Tensor], slopes: list[Tensor], clock: StepState
    ) -> tuple[Tensor, ...]:
        """The gradients at the parameters moved by rho along `slopes`; they are moved back."""
        share = self.hyperparameters["sharpness"] / compute_gradient_norms(slopes)
        moves = [slope * broadcast_values(share, slope) for slope in slopes]
        with torch.no_grad():
            torch._foreach_add_(parameters, moves)
        grads = compute_gradients(self.loss(network, batch, clock), parameters)
        with torch.no_grad():
            torch._foreach_sub_(parameters, moves)
        return grads

    def inconsistency(self, network: Any, batch: Batch, moved: Tensor) -> Tensor:
        """How far the variances of the head's gradients on x and on x~ are apart, and their size on x~, (K,)."""
        variance, _ = self._head_slopes(network, network.embed(*batch.inputs), batch)
        shifted, size = self._head_slopes(network, moved, batch)
        return average_per_replica((variance - shifted).square()) / 4 + size

    def _head_slopes(self, network: Any, x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The variance over rows of the head's gradients, (K, classes, width), and their mean square, (K,)."""
        features = network.encode(x)
        logits = network.head(features)
        if network.head.bias is not None:
            features = torch.cat([features, torch.ones_like(features[..., :1])], dim=-1)
        errors = logits.softmax(-1) - F.one_hot(batch.target, logits.shape[-1]).to(logits.dtype)
        size = average_per_replica(compute_mean_products(errors.square(), features.square()))
        return compute_gradient_variances(features, errors), size
