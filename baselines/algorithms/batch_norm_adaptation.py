"""Batch-norm adaptation: test batches are normalised by their own statistics, or by a mixture of theirs and those of
training.

    mean = N / (N + n) mean_train + n / (N + n) mean_batch,  and the variance alike,  of a batch of n rows

Schneider et al., NeurIPS 2020, section 3, where the training moments count as those of N rows; at N = 0,
the default, it is prediction-time batch normalisation (Nado et al., arXiv:2006.10963). Training is empirical risk.
Nothing is remembered from one batch to the next, so the order of batches does not matter, but which rows come together
does: in batches of one class the moments are that class's. As in the released `robusta`, variances are without bias
like the running ones; a layer in training mode, as in Tent and what follows it, divides by the number of values
instead.
"""

from typing import Any

from torch import Tensor

from ...core.errors import ModelError
from ..layers.norm import BatchNorm
from . import Build
from ._adaptive import TestTimeAdaptation
from ._norms import interpolate_moments

KIND = "domain"
CITATION = (
    "Schneider, Rusak, Eck, Bringmann, Brendel and Bethge, Improving robustness against common corruptions by "
    "covariate shift adaptation, NeurIPS 2020 (arXiv:2006.16971)"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {"prior": 0.0}
"""prior: N, 0 or more."""
SEARCH: dict[str, Any] = {"prior": ["choice", 0.0, 8.0, 16.0, 32.0, 64.0, 128.0]}
LIMITS = {"prior": "at least 0"}


class Algorithm(TestTimeAdaptation):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        if not any(isinstance(module, BatchNorm) for module in network.modules()):
            raise ModelError(
                "batch_norm_adaptation changes moments of batch normalisation, and this network has none: use resnet"
            )
        return network

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        rows = inputs[0].shape[1]
        with interpolate_moments(network, rows / (self.hyperparameters["prior"] + rows)):
            logits: Tensor = network(*inputs)
        return logits
