"""SAR (Niu et al., ICLR 2023): the toy's pictures through its `SAR` and `SAM`. The layers that it leaves out are named
as ours are: those of the last block."""

import math
from collections.abc import Callable
from importlib import import_module

import torch

from .. import pictures, toy
from ..make import Made
from ..reference import Numbers

REPOSITORY = "mr-eggplant/SAR"
COMMIT = "20f6e24b17525f34503510afccedc0629b67b7c4"
RATE, RADIUS = 0.4, 0.1


def adapted(sure: float, sharpness: float) -> Callable[[], Numbers]:
    def call() -> Numbers:
        sam, sar = import_module("sam"), import_module("sar")

        network = sar.configure_model(pictures.plain(sharpness))
        result, names = sar.collect_params(network)
        parameters = [p for p, name in zip(result, names, strict=True) if not name.startswith("body.1.")]
        model = sar.SAR(
            network,
            sam.SAM(parameters, torch.optim.SGD, rho=RADIUS, lr=RATE, momentum=toy.MOMENTUM),
            margin_e0=sure * math.log(toy.CLASSES),
        )
        return pictures.recorded(model, network, lambda model, batch: model(batch).detach())

    return call


def settings(sure: float, sharpness: float) -> dict[str, float]:
    return {"adaptive_lr": RATE, "radius": RADIUS, "sure": sure, "sharpness": sharpness}


MADE = {
    "sar": Made(adapted(0.72, 3.0), "sar.py: SAR", settings(0.72, 3.0), "adapting"),
    "sar.collapse": Made(adapted(0.8, 18.0), "sar.py: SAR", settings(0.8, 18.0), "adapting"),
}
