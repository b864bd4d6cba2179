"""Loss correction (Patrini et al., CVPR 2017), whose code has soft bootstrapping too. It is written for Keras: the
functions that it calls there are torch's."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import toy
from ..make import Made
from ..plain import on_cpu, with_loss
from ..problems.steps import TRANSITION
from ..reference import Numbers

REPOSITORY = "giorgiop/loss-correction"
COMMIT = "15a79de3c67c31907733392085c333547c2f2b16"


def total(x: Tensor, axis: int, keepdims: bool = False) -> Tensor:
    return x.sum(axis, keepdim=keepdims)


BACKEND: dict[str, Any] = {
    "sum": total,
    "log": torch.log,
    "dot": torch.matmul,
    "clip": lambda x, least, most: x.clamp(least, most),
    "constant": lambda x: torch.as_tensor(x, dtype=torch.float64),
    "epsilon": lambda: 1e-7,
}


def trained(name: str) -> Numbers:
    with on_cpu(keras={}, keras__backend=BACKEND):
        import loss

        built = loss.boot_soft if name == "soft" else loss.robust(name, TRANSITION.numpy())

        def mean(logits: Tensor, label: Tensor, step: int) -> Tensor:
            result: Tensor = built(F.one_hot(label, toy.CLASSES).double(), logits.softmax(-1).clone()).mean()
            return result

        return with_loss(mean)


GIVEN = "with the transition matrix given: that its anchors are a rank apart is in the docstring"

MADE = {
    "bootstrapping": Made(lambda: trained("soft"), "loss.py: boot_soft", {"belief": "soft", "beta": 0.95}),
    "forward_correction": Made(lambda: trained("forward"), "loss.py: robust", {}, "corrected", remark=GIVEN),
    "backward_correction": Made(lambda: trained("backward"), "loss.py: robust", {}, "corrected", remark=GIVEN),
}
