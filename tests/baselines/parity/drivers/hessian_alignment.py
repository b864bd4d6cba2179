"""Hessian alignment (Hemati et al., ICCV 2023), in a fork of DomainBed."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .. import draws, toy
from ..make import Made
from .domainbed import trained

REPOSITORY = "huawei-noah/Federated-Learning"
COMMIT = "a50b474b5ed91084492f94e8dc025ef5070dbd8d"
FOLDER = "HessianAlignment"

SIGNS = 300
"""As many as it draws, whatever is set."""


def signs(step: int) -> Mapping[tuple[Any, str], Callable[..., Any]]:
    """Our step's signs, for the mean risk and then for each environment; it draws 0 for -1, weights before biases."""
    drawn = draws.even("signs", step, (SIGNS, toy.CLASSES, toy.WIDTH + 1)) >= 0.5
    flat = [torch.cat([item[:, : toy.WIDTH].flatten(), item[:, toy.WIDTH]]).double() for item in drawn]
    every: list[Tensor] = flat * (1 + toy.ENVIRONMENTS)
    return {(torch, "randint_like"): draws.dealt(every)}


FILE = "HessianAlignment/domainbed/algorithms.py"
THEIRS, OURS = {"penalty_alpha": 2.0, "penalty_beta": 3.0}, {"hessian": 2.0, "gradient": 3.0}

MADE = {
    "hgp": Made(trained("HGP", THEIRS), f"{FILE}: HGP", OURS),
    "hutchinson": Made(
        trained("Hutchinson", THEIRS, drawn=signs),
        f"{FILE}: Hutchinson",
        OURS | {"samples": SIGNS},
        remark="its environments are given the same signs",
    ),
}
