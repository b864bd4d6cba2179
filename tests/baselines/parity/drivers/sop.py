"""Sparse over-parameterisation (Liu et al., ICML 2022): `overparametrization_loss`."""

from collections import UserDict
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from .. import toy
from ..make import Made
from ..plain import descent, network, on_cpu
from ..problems.steps import noise
from ..reference import Numbers

REPOSITORY = "shengliu66/SOP"
COMMIT = "4d991cedf1fafec98f858a213ccc31e52318a77f"

RATE = 3.0


def fitted() -> Numbers:
    """The losses, the weights and v after each step; u stays."""
    config = UserDict({"num_classes": toy.CLASSES, "reparam_arch": {"args": {"mean": 0.0, "std": 1e-8}}})
    with on_cpu(parse_config={"ConfigParser": SimpleNamespace(get_instance=lambda: config)}):
        from model.loss import overparametrization_loss

        built, x, y = network(), toy.inputs(), toy.labels()
        criterion = overparametrization_loss(len(y), toy.CLASSES).double()
        with torch.no_grad():
            for parameter, value in zip((criterion.u, criterion.v), noise(), strict=True):
                parameter.copy_(value)
        optimisers = [descent(built.parameters()), torch.optim.SGD([criterion.v], RATE)]
        losses, parameters, v = [], [], []
        for _ in range(toy.STEPS):
            result = criterion(range(len(y)), built(x), F.one_hot(y, toy.CLASSES).double())
            for optimiser in optimisers:
                optimiser.zero_grad()
            result.backward()
            for optimiser in optimisers:
                optimiser.step()
            losses.append(result.item())
            parameters.append(toy.flat(built.parameters()))
            v.append(toy.flat([criterion.v]))
    return {"losses": losses, "parameters": parameters, "v": v}


MADE = {
    "sop": Made(
        fitted,
        "model/loss.py: overparametrization_loss",
        {"u_lr": 0.0, "v_lr": RATE},
        "sop",
        remark="from a u that stays: there it descends the squared error too",
    )
}
