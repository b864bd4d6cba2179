"""Group distributionally robust optimisation (Sagawa et al., ICLR 2020): the authors' `LossComputer`."""

from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from .. import toy
from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "kohpangwei/group_DRO"
COMMIT = "cbbc1c5b06844e46b87e264326b56056d2a437d1"


def robust() -> Numbers:
    sizes = torch.full((toy.ENVIRONMENTS,), float(toy.ROWS), dtype=torch.float64)
    groups = SimpleNamespace(n_groups=toy.ENVIRONMENTS, group_counts=lambda: sizes, group_str=str)
    with on_cpu():
        from loss import LossComputer

        built = LossComputer(
            nn.CrossEntropyLoss(reduction="none"), True, groups, 0.2, adj=np.full(toy.ENVIRONMENTS, 1.5), step_size=0.3
        )
        # Its sum with the adjustment is in place, and so in the minimised loss as well; ours has it in the weights alone.
        constant = 1.5 / toy.ROWS**0.5
        return with_loss(lambda logits, label, step: built.loss(logits, label, toy.groups()) - constant)


MADE = {
    "group_dro.authors": Made(
        robust,
        "loss.py: LossComputer",
        {"step_size": 0.3, "adjustment": 1.5},
        remark="the adjustment, which it also adds to the loss, is taken off it again",
    )
}
