"""LDAM-DRW (Cao et al., NeurIPS 2019): the toy through its `LDAMLoss` and `NormedLinear`; the weights of classes are those
that its cifar_train.py computes for the rule DRW, from the third step on."""

from importlib import import_module
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..reference import Numbers

REPOSITORY = "kaidic/LDAM-DRW"
COMMIT = "2536330f2afdaa65618323cb5a5850efccce762a"
WHERE = torch.where
MARGIN, SCALE, EFFECTIVE = 0.4, 5.0, 0.9


def call() -> Numbers:
    losses_file, networks = import_module("losses"), import_module("models.resnet_cifar")
    counts = torch.bincount(toy.labels(), minlength=toy.CLASSES).tolist()
    plain = nn.Sequential(nn.Linear(toy.INPUTS, toy.WIDTH), nn.ReLU(), nn.Linear(toy.WIDTH, toy.CLASSES)).double()
    toy.fill(plain.parameters())
    head = networks.NormedLinear(toy.WIDTH, toy.CLASSES).double()
    head.weight.data = plain[2].weight.detach().T.clone()
    network = nn.Sequential(plain[0], plain[1], head)
    descent = torch.optim.SGD(network.parameters(), toy.RATE, momentum=toy.MOMENTUM)
    losses, parameters = [], []
    for step in range(toy.STEPS):
        effective = 1.0 - np.power(0 if step < 2 else EFFECTIVE, counts)
        weights = (1.0 - (0 if step < 2 else EFFECTIVE)) / np.array(effective)
        weights = weights / np.sum(weights) * len(counts)
        with (
            patch.object(torch.cuda, "FloatTensor", torch.DoubleTensor),
            # It gives bytes, which are no longer taken for truth values.
            patch.object(torch, "where", lambda given, *values: WHERE(given.bool(), *values)),
        ):
            weighted = torch.tensor(weights)
            criterion = losses_file.LDAMLoss(counts, max_m=MARGIN, s=SCALE, weight=weighted)
            loss: Tensor = criterion(network(toy.inputs()), toy.labels())
        descent.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        descent.step()
        losses.append(loss.item())
        parameters.append(toy.flat([*plain[0].parameters(), head.weight.T, plain[2].bias]))
    return {"losses": losses, "parameters": parameters}


SETTINGS = {"max_margin": MARGIN, "scale": SCALE, "effective": EFFECTIVE, "defer_percent": 50}
MADE = {"ldam": Made(call, "losses.py: LDAMLoss", SETTINGS)}
