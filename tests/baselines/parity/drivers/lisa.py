"""LISA's released code: its `mix_up` of given pairs, and descent on the cross-entropy of what that gives."""

from importlib import import_module
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.lisa import draw_partners
from farshift.baselines.replicas.rng import derive_stream, draw_beta, make_keys
from torch import nn

from .. import toy
from ..make import Made
from ..reference import Numbers

REPOSITORY = "huaxiuyao/LISA"
COMMIT = "c857a6b296b5d130898f0d51a6d693411c39e651"


def lisa() -> Numbers:
    """Rows are paired as ours are; its shares, single-precision numbers as released, are in double precision."""
    mix_up = import_module("domain_shifts.mixup").mix_up

    model = nn.Sequential(nn.Linear(toy.INPUTS, toy.WIDTH), nn.ReLU(), nn.Linear(toy.WIDTH, toy.CLASSES)).double()
    toy.fill(model.parameters())
    descent = torch.optim.SGD(model.parameters(), toy.RATE, toy.MOMENTUM)
    x, y = toy.inputs(), toy.labels()
    hot = F.one_hot(y, toy.CLASSES).double()
    losses, parameters = [], []
    for step in range(toy.STEPS):
        key = derive_stream(make_keys(["parity"]), "partners", step)
        pair = draw_partners(key, y[None], toy.groups()[None], torch.tensor([True]))[0]
        shares = draw_beta(derive_stream(make_keys(["parity"]), "shares", step), (len(x),), 0.5)[0].numpy()[:, None]
        with (
            patch.object(np.random, "beta", lambda *_, drawn=shares: drawn),
            patch.object(torch, "float32", torch.double),
        ):
            mixed, target = mix_up(SimpleNamespace(mix_alpha=0.5), x, hot, x[pair], hot[pair])
        loss = -(F.log_softmax(model(mixed), dim=-1) * target).sum(-1).mean()
        descent.zero_grad()
        loss.backward()
        descent.step()
        losses.append(loss.item())
        parameters.append(toy.flat(model.parameters()))
    return {"losses": losses, "parameters": parameters}


MADE = {
    "lisa": Made(
        lisa,
        "domain_shifts/mixup.py: mix_up",
        {"alpha": 0.5, "within_class": 1.0},
        remark="pairs and shares drawn as ours",
    ),
}
