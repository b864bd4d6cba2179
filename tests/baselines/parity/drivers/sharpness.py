"""Sharpness-aware minimisation in wide use (of Foret et al., ICLR 2021): the optimiser `SAM`."""

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import toy
from ..make import Made
from ..plain import network
from ..reference import Numbers

REPOSITORY = "davda54/sam"
COMMIT = "3c3afdbd71cff2462ec91c734b3d1170bd0f3707"


def climbed() -> Numbers:
    from sam import SAM

    built, x, y = network(), toy.inputs(), toy.labels()
    optimiser = SAM(built.parameters(), torch.optim.SGD, rho=0.4, lr=toy.RATE, momentum=toy.MOMENTUM)

    def closure() -> Tensor:
        result = F.cross_entropy(built(x), y)
        result.backward()
        return result

    losses, parameters = [], []
    for _ in range(toy.STEPS):
        losses.append(closure().item())
        optimiser.step(closure)
        optimiser.zero_grad()
        parameters.append(toy.flat(built.parameters()))
    return {"losses": losses, "parameters": parameters}


MADE = {"sam": Made(climbed, "sam.py: SAM", {"sharpness": 0.4})}
