"""EATA (Niu et al., ICML 2022): the toy's pictures through its `EATA`; the squared gradients of its main.py are taken as
that file does, of the training rows in their order as one batch."""

import math
from collections.abc import Callable
from importlib import import_module

import torch
import torch.nn.functional as F

from .. import pictures, toy
from ..make import Made
from ..reference import Numbers

REPOSITORY = "mr-eggplant/EATA"
COMMIT = "f739b3668cc7617e9b9f1979c1a358497a3472c3"
RATE, SURE, REDUNDANT = 0.2, 0.74, 0.9995


def adapted(anchoring: float) -> Callable[[], Numbers]:
    def call() -> Numbers:
        eata = import_module("eata")

        network = eata.configure_model(pictures.plain(3.0))
        parameters, _ = eata.collect_params(network)
        fishers = None
        if anchoring:
            outputs = network(torch.cat(pictures.batches()))
            F.cross_entropy(outputs, outputs.argmax(1)).backward()
            trained = [(name, p) for name, p in network.named_parameters() if p.grad is not None]
            fishers = {name: [p.grad.clone() ** 2, p.detach().clone()] for name, p in trained}  # type: ignore[union-attr]
            network.zero_grad()
        model = eata.EATA(
            network,
            torch.optim.SGD(parameters, RATE, momentum=toy.MOMENTUM),
            fishers,
            anchoring,
            e_margin=SURE * math.log(toy.CLASSES),
            d_margin=REDUNDANT,
        )
        return pictures.recorded(model, network, lambda model, batch: model(batch).detach())

    return call


SETTINGS = {"adaptive_lr": RATE, "sure": SURE, "redundant": REDUNDANT, "sharpness": 3.0}
MADE = {
    "eata": Made(adapted(3.0), "eata.py: EATA", {**SETTINGS, "anchoring": 3.0}, "adapting"),
    "eata.eta": Made(adapted(0.0), "eata.py: EATA", {**SETTINGS, "anchoring": 0.0}, "adapting"),
}
