"""Layer-increasing scaling (LiNeS): the weight change since an early checkpoint is scaled down, most in the first
layers.

theta_l = theta_early_l + (alpha + beta l / (L - 1)) (theta_last_l - theta_early_l) for the layers l = 0 .. L - 1 (Wang
et al.). alpha + beta = 1 keeps the last layer as trained. A layer is a module with parameters of its own,
in the order in which the network has them; a network of one layer has l / (L - 1) = 1. The early end, there a
pretrained model, is that of `wise_ft`.
"""

from typing import Any

from torch import Tensor, nn

from ._weights import WeightInterpolation

KIND = "any"
CITATION = (
    "Wang, Dimitriadis, Favero, Ortiz-Jimenez, Fleuret and Frossard, LiNeS: post-training layer scaling prevents "
    "forgetting and enhances model merging, ICLR 2025 (arXiv:2410.17146)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"alpha": 0.5, "beta": 0.5, "early_percent": 25}
"""alpha: the share of the first layer's change that is preserved; beta: how much more of the last layer's.
early_percent: of the steps, after which the weights are the early ones."""
SEARCH: dict[str, Any] = {"alpha": ["uniform", 0.0, 1.0], "beta": ["uniform", 0.0, 1.0]}


class Algorithm(WeightInterpolation):
    def shares(self, network: nn.Module) -> list[Tensor]:
        depth = find_parameter_depths(network)
        last = max(depth)
        alpha, beta = self.hyperparameters["alpha"], self.hyperparameters["beta"]
        return [alpha + beta * (layer / last if last else 1.0) for layer in depth]


def find_parameter_depths(network: nn.Module) -> list[int]:
    """The layer of each parameter of `network`, from 0, in the order of `parameters()`; a pretrained network defines
    its layers."""
    if (own := getattr(network, "depths", None)) is not None:
        return own()
    layer_by_id: dict[int, int] = {}
    layer = 0
    for module in network.modules():
        new_parameters = [p for p in module.parameters(recurse=False) if id(p) not in layer_by_id]
        layer_by_id |= dict.fromkeys(map(id, new_parameters), layer)
        layer += bool(new_parameters)
    return [layer_by_id[id(parameter)] for parameter in network.parameters()]
