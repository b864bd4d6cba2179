"""Invariant risk minimisation (Arjovsky et al., 2019): the functions of the authors' ColoredMNIST script, put together as
it does, for a network of two logits of which it has their difference."""

import torch
from torch import Tensor, autograd, nn

from .. import toy
from ..make import Made
from ..plain import descended, network, on_cpu, taken
from ..problems.steps import BINARY_CLASSES as CLASSES
from ..reference import Numbers

REPOSITORY = "facebookresearch/InvariantRiskMinimization"
COMMIT = "fc185d0f828a98f57030ba3647efc7394d1be95a"
FOLDER = "code/colored_mnist"

PENALTY, L2 = 5.0, 0.01


def invariant() -> Numbers:
    with on_cpu():
        result = taken("main.py", "mean_nll", "penalty", nn=nn, torch=torch, autograd=autograd)
        built = network(classes=CLASSES)
        x, y = toy.inputs().split(toy.ROWS), toy.labels(CLASSES)[:, None].double().split(toy.ROWS)

        def loss(step: int) -> Tensor:
            logits = [(item[:, 1:] - item[:, :1]) for item in map(built, x)]
            risk = torch.stack([result["mean_nll"](*pair) for pair in zip(logits, y, strict=True)]).mean()
            penalty = torch.stack([result["penalty"](*pair) for pair in zip(logits, y, strict=True)]).mean()
            weight = PENALTY if step >= 1 else 1.0
            norm = torch.stack([parameter.norm().pow(2) for parameter in built.parameters()]).sum()
            total: Tensor = risk + L2 * norm + weight * penalty
            return total / weight

        return descended([built], loss)


MADE = {
    "irm.authors": Made(
        invariant,
        "code/colored_mnist/main.py: mean_nll, penalty",
        {"penalty": PENALTY, "anneal_percent": 33, "l2": L2, "halves": False, "rescale": True, "restart": False},
        "binary",
    )
}
