"""mixup (Zhang et al., ICLR 2018): the functions of `train.py`."""

import numpy as np
import torch
from torch import Tensor, nn

from .. import draws, toy
from ..make import Made
from ..plain import descended, network, on_cpu, replaced, taken
from ..reference import Numbers

REPOSITORY = "facebookresearch/mixup-cifar10"
COMMIT = "eaff31ab397a90fbc0a4aac71fb5311144b3608b"

ALPHA = 0.6


def mixed() -> Numbers:
    with on_cpu():
        functions = taken("train.py", "mixup_data", "mixup_criterion", np=np, torch=torch)
        built, x, y = network(), toy.inputs(), toy.labels()

        def loss(step: int) -> Tensor:
            drawn = {
                (torch, "randperm"): draws.dealt([draws.order("partners", step, len(y))]),
                (np.random, "beta"): draws.dealt(draws.shares("shares", step, ALPHA)),
            }
            with replaced(drawn):
                between, own, other, share = functions["mixup_data"](x, y, ALPHA, False)
            result: Tensor = functions["mixup_criterion"](nn.CrossEntropyLoss(), built(between), own, other, share)
            return result

        return descended([built], loss)


MADE = {"mixup": Made(mixed, "train.py: mixup_data, mixup_criterion", {"alpha": ALPHA}, remark="drawn as ours")}
