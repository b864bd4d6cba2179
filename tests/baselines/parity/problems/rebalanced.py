"""What rows of uneven classes or environments count in a loss: cRT's weights of its second stage, as shares; group
reweighting's steps on batches in which the rows of each environment stand equally often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .. import toy
from .steps import data, steps, training

ENVIRONMENTS = (6, 3, 2)


def uneven_labels() -> Tensor:
    """The labels (18,) of twelve, four and two rows of the classes."""
    return torch.tensor([0] * 12 + [1] * 4 + [2] * 2)


def uneven_rows() -> tuple[Tensor, Tensor, Tensor]:
    """The inputs, labels and environments of the first rows of each environment."""
    rows = torch.cat([toy.ROWS * number + torch.arange(count) for number, count in enumerate(ENVIRONMENTS)])
    return toy.inputs()[rows], toy.labels()[rows], toy.groups()[rows]


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`weights` (18) of cRT; of group reweighting as `steps.py`."""
    if name == "crt":
        given = data(y=uneven_labels())
        stack = training(name, settings, given).stack
        again, _ = stack.algorithm.next_stage(0, stack.network, given, stack.answer)
        return {"weights": (again.weight[0] / again.weight[0].sum()).tolist()}
    x, y, groups = uneven_rows()
    built = training(name, settings, replace(data(x, y), group=groups))
    each = [
        torch.nonzero(groups == number)[:, 0].repeat(toy.ROWS // count) for number, count in enumerate(ENVIRONMENTS)
    ]
    full = replace(built.sampler.select_rows(torch.cat(each)[None]), environments=len(ENVIRONMENTS))
    built.sampler.batches = lambda step: iter([(full, None)])  # type: ignore[method-assign]
    return steps(built)
