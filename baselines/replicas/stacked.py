"""Networks of one replica made into one of many, and back.

Every parameter and every saved buffer has the replica as its first axis; buffers that are not saved (tables of
positions) are shared by all.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from .rng import Rng

N = TypeVar("N", bound=nn.Module)


def _tensors(network: nn.Module) -> list[tuple[nn.Module, str, Tensor]]:
    """Every (module, name, tensor) with a replica axis."""
    found: list[tuple[nn.Module, str, Tensor]] = []
    for module in network.modules():
        found += [(module, name, value) for name, value in module._parameters.items() if value is not None]
        saved = {name for name in module._buffers if name not in module._non_persistent_buffers_set}
        found += [
            (module, name, value) for name, value in module._buffers.items() if value is not None and name in saved
        ]
    return found


def _put(module: nn.Module, name: str, value: Tensor) -> None:
    if name in module._parameters:
        old = module._parameters[name]
        assert old is not None
        module._parameters[name] = nn.Parameter(value, requires_grad=old.requires_grad)
    else:
        module._buffers[name] = value


def stacked(networks: Sequence[N]) -> N:
    """One network of all replicas of the given ones, in their order. They must be of one shape; they are used up."""
    first = networks[0]
    every = [_tensors(network) for network in networks]
    for place, (module, name, _) in enumerate(every[0]):
        _put(module, name, torch.cat([tensors[place][2].detach() for tensors in every]))
    return first


def picked(network: N, which: Sequence[int] | Tensor) -> N:
    """A copy with only some of the replicas, in the order of `which`."""
    chosen = torch.as_tensor(which, dtype=torch.int64)
    found = copy.deepcopy(network)
    for module, name, value in _tensors(found):
        _put(module, name, value.detach()[chosen.to(value.device)].clone())
    return found


def count(network: nn.Module) -> int:
    """How many replicas a network has."""
    return len(next(network.parameters()))


def size(network: nn.Module) -> int:
    """Parameters of one replica."""
    return sum(parameter[0].numel() for parameter in network.parameters())


def attach(network: nn.Module, rng: Rng) -> None:
    """Give the layers that draw at random (dropout and the like) the generator that they draw from."""
    for module in network.modules():
        if hasattr(module, "rng"):
            setattr(module, "rng", rng)  # noqa: B010  (a module's attributes are typed as tensors and modules)
