"""SAR: Tent on confident test rows with sharpness-aware steps, and a reset if the model collapses.

    g = grad of the mean of H(x) over {H(x) < E_0};   at w + rho g / |g|, the mean of H(x) over those of them that are
    below E_0 there too: w moves down its gradient, with momentum 0.9

Niu et al., ICLR 2023, equations 2 to 5. H is the entropy of the predictions, E_0 a share of log(classes), w the scales
and shifts of the normalisation layers; those of the network's last block stay, as the released code leaves out layer4
of a ResNet. A moving average of the second mean, 0.9 old + 0.1 new, detects a collapse: below `collapsed`, weights and
momentum are reset to the start. As in the released code the average itself is not, so that resets repeat until
entropies have risen; its threshold there is 0.2 whatever the argument says. `reset` resets the average too.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from ..training.losses import compute_gradients
from ..training.optimiser_step import broadcast_values
from . import Build
from ._adaptive import OnlineAdaptation, OnlineMomentum, entropy, list_affine_parameters
from ._norms import use_batch_moments
from ._weights import preserve_values

KIND = "domain"
CITATION = (
    "Niu, Wu, Zhang, Wen, Chen, Zhao and Tan, Towards stable test-time adaptation in dynamic wild world, ICLR 2023 "
    "(arXiv:2302.12400)"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {"adaptive_lr": 2.5e-4, "sure": 0.4, "radius": 0.05, "collapsed": 0.2}
"""adaptive_lr: of the steps while predicting (2.5e-4 for residual networks in batches of 64). sure: E_0 over
log(classes). radius: rho. collapsed: the average entropy, in nats, below which it begins anew."""
SEARCH: dict[str, Any] = {"adaptive_lr": ["log10", -5, -2], "radius": ["choice", 0.01, 0.05, 0.1]}


class Algorithm(OnlineAdaptation):
    optimiser_class = OnlineMomentum
    optimiser: OnlineMomentum
    average: Tensor
    """Of the entropies, (K,); -1 where there was none yet."""

    def assemble(self, build: Build) -> Any:
        like = self.hyperparameters["lr"]
        self.register_buffer("average", like.new_full((len(like),), -1.0))
        return super().assemble(build)

    def adapted_parameters(self, network: nn.Module) -> list[Tensor]:
        """Without those of the last of several blocks."""
        body = getattr(network, "body", None)
        last = body[-1] if isinstance(body, nn.Sequential) and len(body) > 1 else nn.Identity()
        left_out = {id(parameter) for parameter in last.parameters()}
        return [parameter for parameter in list_affine_parameters(network) if id(parameter) not in left_out]

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        parameters = self.adapted_parameters(network)
        most = (self.hyperparameters["sure"] * math.log(self.about.outputs))[:, None]
        with torch.enable_grad(), use_batch_moments(network, 0.0), preserve_values(parameters):
            logits: Tensor = network(*inputs)
            uncertainty = entropy(logits)
            sure = uncertainty.detach() < most
            first = compute_gradients(compute_masked_mean(uncertainty, sure), parameters)
            norm = torch.stack([gradient.flatten(1).square().sum(1) for gradient in first]).sum(0).sqrt()
            with torch.no_grad():
                for parameter, gradient in zip(parameters, first, strict=True):
                    parameter += broadcast_values(self.hyperparameters["radius"] / (norm + 1e-12), gradient) * gradient
            uncertainty = entropy(network(*inputs))
            sure = sure & (uncertainty.detach() < most)
            second = compute_masked_mean(uncertainty, sure)
            grads = compute_gradients(second, parameters)
        # Where no row is sure the gradient is 0, and momentum goes on.
        self.optimiser.step(parameters, grads, self.hyperparameters["adaptive_lr"])
        self._watch(parameters, second.detach(), sure.any(1))
        return logits.detach()

    @torch.no_grad()
    def _watch(self, parameters: list[Tensor], mean_entropy: Tensor, some: Tensor) -> None:
        """Update the average with the mean entropies (K,), where there were `some`, and reset where it is low."""
        moved = torch.where(self.average < 0, mean_entropy, 0.9 * self.average + 0.1 * mean_entropy)
        self.average.copy_(torch.where(some, moved, self.average))
        collapsed = (self.average >= 0) & (self.average < self.hyperparameters["collapsed"])
        for parameter, start in zip(parameters, self.start.values, strict=True):
            parameter.copy_(torch.where(broadcast_values(collapsed, start), start, parameter))
        self.optimiser.reset(collapsed)

    def reset(self, network: Any) -> None:
        super().reset(network)
        self.average.fill_(-1.0)


def compute_masked_mean(values: Tensor, which: Tensor) -> Tensor:
    """The mean of values (K, n) over some of them (K, n) bool; 0 where there is none."""
    return (values * which).sum(1) / which.sum(1).clamp(min=1)
