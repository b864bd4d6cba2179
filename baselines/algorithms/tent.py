"""Tent: entropy minimisation on test batches, over the affine parameters of normalisation layers.

Training is empirical risk. Each test batch is normalised by its own moments, predicted, and then the scales and shifts
of the normalisation layers make a step of Adam down the mean entropy of these predictions (Wang et al., section 3.2;
online, one step a batch). A prediction is made before the step that it causes. Known traps avoided: `reset` restores
the moments of Adam along with the parameters; the version beside T3A's and AdaNPC's code leaves the features in
training mode once it has adapted. Here there is no dropout throughout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..layers.norm import BatchNorm, LayerNorm
from ..training.losses import compute_gradients
from . import Build, Data
from ._adaptive import OnlineAdam, TestTimeAdaptation, entropy
from ._norms import use_batch_moments
from ._weights import RunningMean

KIND = "domain"
CITATION = (
    "Wang, Shelhamer, Liu, Olshausen and Darrell, Tent: fully test-time adaptation by entropy minimization, ICLR 2021 "
    "(arXiv:2006.10726)"
)
TASKS = ("classification",)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {"adaptive_lr": 1e-3}
"""adaptive_lr: of the steps while predicting."""
SEARCH: dict[str, Any] = {"adaptive_lr": ["log10", -5, -2]}


class Algorithm(TestTimeAdaptation):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        if not list_affine_parameters(network):
            raise ModelError("tent adapts normalisation layers, and this network has none: use resnet")
        self.start = RunningMean(list_affine_parameters(network)).to(self.hyperparameters["lr"])
        self.optimiser = OnlineAdam(list_affine_parameters(network)).to(self.hyperparameters["lr"])
        return network

    def prepare(self, network: Any, data: Data) -> None:
        self.start.take(list_affine_parameters(network))

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        with torch.enable_grad(), use_batch_moments(network, 0.0):
            logits: Tensor = network(*inputs)
            grads = compute_gradients(entropy(logits).mean(1), list_affine_parameters(network))
        self.optimiser.step(list_affine_parameters(network), grads, self.hyperparameters["adaptive_lr"])
        return logits.detach()

    def reset(self, network: Any) -> None:
        self.start.put(list_affine_parameters(network))
        self.optimiser.reset()


def list_affine_parameters(network: nn.Module) -> list[Tensor]:
    """The scales and shifts of a network's normalisation layers."""
    norms = [module for module in network.modules() if isinstance(module, (BatchNorm, LayerNorm))]
    return [parameter for norm in norms for parameter in norm.parameters(recurse=False)]
