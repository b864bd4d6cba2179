"""Normalised losses (Ma et al., ICML 2020): the losses of `loss.py`."""

import math

from .. import toy
from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "HanxunH/Active-Passive-Losses"
COMMIT = "04bce5344035ca69102b9cfb0228df0f49f1707d"


def trained(name: str, *given: float) -> Numbers:
    with on_cpu(mlconfig={"register": lambda kind: kind}):
        import loss

        built = getattr(loss, name)(*given, num_classes=toy.CLASSES)
        return with_loss(lambda logits, label, step: built(logits, label))


def absolute() -> Numbers:
    with on_cpu(mlconfig={"register": lambda kind: kind}):
        import loss

        built = loss.MeanAbsoluteError(toy.CLASSES, 2.0)
        return with_loss(lambda logits, label, step: built(logits, label))


MADE = {
    "mae": Made(absolute, "loss.py: MeanAbsoluteError", {}, remark="at the scale 2: it leaves the factor out"),
    "active_passive": Made(lambda: trained("NCEandRCE", 0.8, 0.3), "loss.py: NCEandRCE", {"alpha": 0.8, "beta": 0.3}),
    "sce": Made(
        lambda: trained("SCELoss", 0.8, 0.3),
        "loss.py: SCELoss",
        {"alpha": 0.8, "beta": 0.3 * -math.log(1e-4) / 4},
        remark="its A is log 1e-4, ours the paper's -4: the weights differ by their ratio",
    ),
}
