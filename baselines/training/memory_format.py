"""The memory layout of images during a step. The setting `memory_format`:

    auto           unchanged: channels last if the stored image has them last
    channels_last  what the fastest convolutions of most GPUs read in bfloat16
    contiguous     channels first

Values are the same, up to the order of floating-point sums. Replicas that are convolved as groups of one call have the
layout of that call, whatever the setting.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..layers.convolution import Conv2d

FORMATS = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}


@contextmanager
def use_memory_format(network: nn.Module, choice: str) -> Iterator[None]:
    """While the context lasts, every convolution of a network reads images in the layout `choice`."""
    if choice == "auto":
        yield
        return

    def before(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        first, *rest = given
        return (apply_memory_format(first, FORMATS[choice]), *rest)

    convolutions = [layer for layer in network.modules() if isinstance(layer, Conv2d | nn.Conv2d)]
    hooks = [layer.register_forward_pre_hook(before) for layer in convolutions]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def apply_memory_format(x: Tensor, memory_format: torch.memory_format) -> Tensor:
    """Convert images (.., channels, height, width) to a memory format; the values stay the same."""
    return x.flatten(0, -4).contiguous(memory_format=memory_format).view(x.shape)
