"""Pruning by inverse participation ratio: ERM, after which hidden neurons that memorise are removed.

On modular arithmetic a neuron that generalises is a wave in each of its inputs and in the classes: its weights have one
Fourier component. One that memorises has many. With w~ the discrete Fourier transform of real weights w,

    IPR(w) = sum_j (|w~_j| / |w~|)^4,  1 for one wave, near 4 / len(w) for noise

and a neuron's ratio is the mean of those of its weights from each input and to the classes. Doshi et al., ICLR 2024,
section 2. The paper prunes neurons one after the other, lowest ratio first, and draws the curve of accuracies; here
those with a ratio under `threshold` go, all their outgoing weights set to zero.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from . import Build, Data, erm

KIND = "corrupted-label"
CITATION = (
    "Doshi, Das, He and Gromov, To grok or not to grok: disentangling generalization and memorization on corrupted "
    "algorithmic datasets, ICLR 2024 (arXiv:2310.13061)"
)
SETTINGS: dict[str, Any] = {"loss": "squared", "label_smoothing": 0.0, "threshold": 0.3}
"""loss, label_smoothing: as of empirical risk. threshold: the inverse participation ratio below which a neuron goes."""
SEARCH: dict[str, Any] = {"threshold": ["uniform", 0.1, 0.6]}
LIMITS = {"loss": ("cross-entropy", "squared")}


class Algorithm(erm.Algorithm):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        if not hasattr(network, "into") or not hasattr(network, "starts"):
            raise ModelError(
                "ipr_pruning needs a network with one hidden layer and categorical inputs only: use quadratic_mlp"
            )
        return network

    @torch.no_grad()
    def finish(self, network: Any, data: Data, answer: Callable[..., Tensor]) -> None:
        ratio = torch.stack([compute_fourier_ratio(weights) for weights in list_neuron_weights(network)]).mean(0)
        network.head.weight *= (ratio >= self.hyperparameters.on("threshold", ratio))[:, None]


def list_neuron_weights(network: Any) -> list[Tensor]:
    """Each hidden neuron's weights from each categorical input, and to the classes: each (K, neurons, values)."""
    fields = torch.tensor_split(network.into.weight.transpose(1, 2), network.starts.tolist()[1:], dim=2)
    return [*fields, network.head.weight.transpose(1, 2)]


def compute_fourier_ratio(weights: Tensor) -> Tensor:
    """The inverse participation ratio of the Fourier components over the last axis, in (0, 1]; of no weights 0."""
    return compute_participation_ratio(torch.fft.rfft(weights).abs().square())


def compute_participation_ratio(powers: Tensor) -> Tensor:
    """The inverse participation ratio of components of these powers over the last axis, in (0, 1]; 0 if all are 0."""
    share = powers / powers.sum(-1, keepdim=True).clamp(min=torch.finfo(powers.dtype).tiny)
    return share.square().sum(-1)
