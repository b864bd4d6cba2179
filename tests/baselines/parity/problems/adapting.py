"""Three batches of pictures, asked one after the other of a network that adapts: what is answered, and all weights after
each. The settings `sharpness` and `keep_weights` are the problem's own: see `pictures.fill`, and whether weights are
compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from torch import Tensor

from .. import pictures, toy
from .steps import training


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`answers` (3, rows x classes) and `parameters` (3, all weights)."""
    stack = made(algorithm, dict(settings))
    return pictures.recorded(stack, stack.network, asked)


def asked(stack: ReplicaStack, batch: Tensor) -> Tensor:
    """The logits of pictures, (n, classes)."""
    flat = batch.flatten(1)
    return stack.answer(torch.zeros(len(flat), 0, dtype=torch.int64), flat, rows=len(flat))[0]


def data() -> Data:
    """The pictures as training rows, of one environment, with the toy's labels."""
    shown = torch.cat(pictures.batches()).flatten(1)
    ones = torch.ones(len(shown))
    inputs = torch.zeros(len(shown), 0, dtype=torch.int64), shown
    return Data(inputs, toy.labels()[None], ones.long(), ones[None].double())


def made(algorithm: str, settings: dict[str, Any]) -> ReplicaStack:
    """A replica whose training has ended with the toy's weights."""
    sharpness = settings.pop("sharpness", 1.0)
    own = {"widths": pictures.WIDTHS} | settings
    result = training(algorithm, own, data(), network="resnet", sizes=pictures.SIZES)
    pictures.fill(result.stack.network, sharpness)
    result._end(result.stack, result.data)
    return result.stack
