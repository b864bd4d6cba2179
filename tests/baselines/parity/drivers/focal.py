"""The focal loss (of Lin et al., ICCV 2017) that LDAM's authors compare with (Cao et al., NeurIPS 2019): `FocalLoss`."""

from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "kaidic/LDAM-DRW"
COMMIT = "2536330f2afdaa65618323cb5a5850efccce762a"


def focused() -> Numbers:
    with on_cpu():
        from losses import FocalLoss

        criterion = FocalLoss(gamma=1.5)
        return with_loss(lambda logits, label, step: criterion(logits, label))


MADE = {"focal": Made(focused, "losses.py: FocalLoss", {"gamma": 1.5})}
