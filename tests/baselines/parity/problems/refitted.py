"""What a head that was fitted again, to validation rows of two classes, answers to other rows, at the toy's weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from farshift.baselines.encoding.encoding import Sizes
from torch import Tensor

from .. import toy
from .steps import data, training

CLASSES = 2


def held() -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, labels and environments of 54 validation rows."""
    x = torch.cat([toy.inputs(phase) for phase in (1.3, 2.9, 5.1)])
    position = torch.arange(len(x))
    return x, (x.sum(1) + torch.sin(3.0 * position) > 0).long(), (position % 7 < 3).long()


def asked() -> Tensor:
    return toy.inputs(3.7)


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`first`: the probability of class 1 of the rows that are asked."""
    x, y, group = held()
    given = replace(data(y=toy.labels(CLASSES)), held_out={"id_val": replace(data(x, y), group=group)})
    built = training(name, settings, given, sizes=Sizes(CLASSES, numbers=toy.INPUTS))
    stack = built.stack
    stack.ready()
    stack.network.eval()
    stack.algorithm.finish(stack.network, given, stack.answer)
    nothing = torch.zeros(len(asked()), 0, dtype=torch.int64)
    return {"first": stack.answer(nothing, asked())[0].softmax(-1)[:, 1].tolist()}
