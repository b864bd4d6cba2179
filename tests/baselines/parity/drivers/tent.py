"""Tent (Wang et al., ICLR 2021): the toy's pictures through its `Tent`."""

from importlib import import_module

import torch

from .. import pictures
from ..make import Made
from ..reference import Numbers

REPOSITORY = "DequanWang/tent"
COMMIT = "e9e926a668d85244c66a6d5c006efbd2b82e83e8"


def call() -> Numbers:
    tent = import_module("tent")

    network = tent.configure_model(pictures.plain())
    parameters, _ = tent.collect_params(network)
    model = tent.Tent(network, torch.optim.Adam(parameters, 0.05))
    return pictures.recorded(model, network, lambda model, batch: model(batch).detach())


MADE = {"tent": Made(call, "tent.py: Tent", {"adaptive_lr": 0.05}, "adapting")}
