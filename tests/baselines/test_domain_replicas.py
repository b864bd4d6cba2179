"""A replica of a domain algorithm is the same alone or among others, to the last bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from .three_environments import training

ALGORITHMS = [
    "and_mask",
    "coral",
    "domain_mixup",
    "eqrm",
    "fishr",
    "group_dro",
    "hgp",
    "hutchinson",
    "ib_erm",
    "ib_irm",
    "iga",
    "irm",
    "mixup",
    "mmd",
    "sam",
    "sd",
    "vrex",
]


def parameters(algorithm: str, *each: dict[str, Any]) -> Tensor:
    train = training(algorithm, *each, steps=12, optimiser="adamw", lr=0.01)
    while not train.done:
        train.step()
    return torch.cat([parameter.detach().flatten(1) for parameter in train.stack.network.parameters()], dim=1)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_replica_is_the_same_alone_or_among_others(algorithm: str) -> None:
    first, second, third = parameters(algorithm, {}, {"lr": 0.03}, {})
    assert torch.equal(first, parameters(algorithm, {})[0])
    assert not torch.equal(first, second)
    assert not torch.equal(first, third)
