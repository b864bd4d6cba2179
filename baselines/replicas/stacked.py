"""Stack networks of one replica into one of many, and select replicas.

Every parameter and every saved buffer has the replica as its first axis; buffers that are not saved (tables of
positions) are shared by all.
"""

import copy
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from .rng import Rng

N = TypeVar("N", bound=nn.Module)


def _list_tensors(network: nn.Module) -> list[tuple[nn.Module, str, Tensor]]:
    """Every (module, name, tensor) with a replica axis."""
    tensors: list[tuple[nn.Module, str, Tensor]] = []
    for module in network.modules():
        tensors += [(module, name, value) for name, value in module._parameters.items() if value is not None]
        saved = {name for name in module._buffers if name not in module._non_persistent_buffers_set}
        tensors += [
            (module, name, value) for name, value in module._buffers.items() if value is not None and name in saved
        ]
    return tensors


def _set_tensor(module: nn.Module, name: str, value: Tensor) -> None:
    if name in module._parameters:
        old = module._parameters[name]
        assert old is not None
        module._parameters[name] = nn.Parameter(value, requires_grad=old.requires_grad)
    else:
        module._buffers[name] = value


def stack_networks(networks: Sequence[N]) -> N:
    """Stack all replicas of the given networks, in their order. They must have the same shapes, and are not usable
    afterwards."""
    first = networks[0]
    every = [_list_tensors(network) for network in networks]
    for index, (module, name, _) in enumerate(every[0]):
        _set_tensor(module, name, torch.cat([tensors[index][2].detach() for tensors in every]))
    return first


def select_replicas(network: N, which: Sequence[int] | Tensor) -> N:
    """A copy with only some of the replicas, in the order of `which`."""
    chosen = torch.as_tensor(which, dtype=torch.int64)
    selection = copy.deepcopy(network)
    for module, name, value in _list_tensors(selection):
        _set_tensor(module, name, value.detach()[chosen.to(value.device)].clone())
    return selection


def count_parameters(network: nn.Module) -> int:
    """The number of parameters of one replica."""
    return sum(parameter[0].numel() for parameter in network.parameters())


def attach_rng(network: nn.Module, rng: Rng) -> None:
    """Set the generator of the layers that draw at random (dropout and the like)."""
    for module in network.modules():
        if hasattr(module, "rng"):
            setattr(module, "rng", rng)  # noqa: B010  (a module's attributes are typed as tensors and modules)
