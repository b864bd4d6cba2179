"""Tent: entropy minimisation on test batches, over the affine parameters of normalisation layers.

Training is empirical risk. Each test batch is normalised by its own moments, predicted, and then the scales and shifts
of the normalisation layers make a step of Adam down the mean entropy of these predictions (Wang et al., section 3.2;
online, one step a batch). A prediction is made before the step that it causes. Known traps avoided: `reset` restores
the moments of Adam along with the parameters; the version beside T3A's and AdaNPC's code leaves the features in
training mode once it has adapted. Here there is no dropout throughout.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import compute_gradients
from ._adaptive import OnlineAdam, OnlineAdaptation, entropy
from ._norms import use_batch_moments

KIND = "domain"
CITATION = (
    "Wang, Shelhamer, Liu, Olshausen and Darrell, Tent: fully test-time adaptation by entropy minimization, ICLR 2021 "
    "(arXiv:2006.10726)"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {"adaptive_lr": 1e-3}
"""adaptive_lr: of the steps while predicting."""
SEARCH: dict[str, Any] = {"adaptive_lr": ["log10", -5, -2]}


class Algorithm(OnlineAdaptation):
    optimiser_class = OnlineAdam

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        parameters = self.adapted_parameters(network)
        with torch.enable_grad(), use_batch_moments(network, 0.0):
            logits = network(*inputs)
            grads = compute_gradients(entropy(logits).mean(1), parameters)
        self.optimiser.step(parameters, grads, self.hyperparameters["adaptive_lr"])
        return logits.detach()
