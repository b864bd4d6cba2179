"""The floating-point precision of a training step's products.

Weights, optimisers and sums stay in float32. Under bfloat16, matrix products, convolutions and attention are autocast
(Micikevicius et al., Mixed Precision Training, ICLR 2018, arXiv:1710.03740; bfloat16 needs no scaling of the loss). The
setting `precision`:

    auto       bfloat16 on a GPU for networks of convolutions or attention; float32 for everything else
    float32    everywhere
    bfloat16   on a GPU; an error for networks with hand-written recurrences

Small networks that grok, and everything on a CPU, are trained in float32.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch

from ...core.errors import ModelError
from ..layers.attention import Attention
from ..layers.convolution import Conv2d
from ..layers.recurrent import Recurrent
from ..ranges import explain_out_of_range

if TYPE_CHECKING:
    from .replica_stack import ReplicaStack


def compute_in(dtype: torch.dtype, device: str) -> AbstractContextManager[Any]:
    """Compute a step's products in this precision while the context lasts, on a type of device. Weights are cast at
    each use, since a step may change them in between."""
    return torch.autocast(device, dtype, cache_enabled=False) if dtype == torch.bfloat16 else nullcontext()


def choose_precision(stack: ReplicaStack) -> torch.dtype:
    """The precision of a step's products when a replica stack is trained. `ModelError` for a setting that is unknown or
    not possible here."""
    choice, device, own = stack.hyperparameters["precision"], stack.keys.device.type, stack.hyperparameters.dtype
    if problem := explain_out_of_range("precision", choice):
        raise ModelError(f"setting precision = {choice!r}: {problem}")
    parts = [*stack.network.modules()]
    recurrent = any(isinstance(part, Recurrent) for part in parts)
    if choice == "bfloat16" and (device != "cuda" or recurrent):
        why = "networks with recurrent layers are trained in float32" if recurrent else "it is for training on a GPU"
        raise ModelError(f"setting precision = 'bfloat16': {why}: leave it at auto")
    suits = not recurrent and device == "cuda" and any(isinstance(part, Attention | Conv2d) for part in parts)
    lower = choice == "bfloat16" or (choice == "auto" and suits and own == torch.float32)
    return torch.bfloat16 if lower else own
