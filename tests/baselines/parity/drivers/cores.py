"""CORES (Cheng et al., ICLR 2021): `loss_cores`, of the epochs 0, 31 and 60, its weight at each replaced by ours."""

from importlib import import_module

import numpy as np
import torch
from torch import Tensor

from .. import toy
from ..make import Made
from ..plain import descended, network, on_cpu, replaced
from ..reference import Numbers

REPOSITORY = "UCSC-REAL/cores"
COMMIT = "cf0945e2d5eb4f38962913d51d6dff679099ad86"
WEIGHTS = {0: 0.0, 31: 2.0 * (100 / 3 - 10) / 30, 60: 2.0}


def sieved() -> Numbers:
    with on_cpu():
        losses = import_module("loss")
        item, x, y = network(), toy.inputs(), toy.labels()
        prior = torch.bincount(y, minlength=toy.CLASSES).double() / len(y)
        rows, table = np.arange(len(y)), np.zeros((len(y), 100))

        def loss(step: int) -> Tensor:
            given = [], rows, None, table, table.copy(), prior
            with replaced({(losses, "f_beta"): WEIGHTS.__getitem__}):
                result: Tensor = losses.loss_cores(list(WEIGHTS)[step], item(x), y, *given)[0]
            return result

        return descended([item], loss)


REMARK = "its weight of confidence at each epoch is replaced by that of our step"
MADE = {"cores": Made(sieved, "loss.py: loss_cores", {"confidence": 2.0}, remark=REMARK)}
