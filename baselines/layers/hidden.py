"""Which parameters are matrices of hidden layers: what optimisers for matrices are meant for."""

from torch import nn

from .convolution import Conv2d
from .linear import Linear

OUTPUTS = ("head", "verdict")
"""Names of output layers: of networks, and of the judge of re_ranking."""


def mark_hidden(network: nn.Module) -> None:
    """Mark the weights of linear maps and convolutions, except those of output layers. A mark is an attribute of the
    parameter and is lost where parameters are created anew (stacked, picked, copied): mark again then."""
    for name, module in network.named_modules():
        if isinstance(module, Linear | Conv2d) and name.rpartition(".")[2] not in OUTPUTS:
            module.weight.is_hidden = True  # type: ignore[attr-defined]


def is_hidden(parameter: nn.Parameter) -> bool:
    return getattr(parameter, "is_hidden", False)
