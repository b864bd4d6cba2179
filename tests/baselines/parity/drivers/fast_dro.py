"""Distributionally robust losses (Levy et al., NeurIPS 2020): `RobustLoss` of a batch."""

import torch.nn.functional as F

from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "daniellevy/fast-dro"
COMMIT = "dc75246ed5df5c40a54990916ec351ec2b9e0d86"
ALPHA = 0.3


def worst() -> Numbers:
    absent = {"project_to_cs_ball": None, "project_to_cvar_ball": None}
    with on_cpu(utils=absent, datasets={"CustomDistributionSampler": None}):
        from robust_losses import RobustLoss

        robust = RobustLoss(ALPHA, 0, "cvar")
        return with_loss(lambda logits, label, step: robust(F.cross_entropy(logits, label, reduction="none")))


MADE = {"cvar_dro": Made(worst, "robust_losses.py: RobustLoss", {"alpha": ALPHA})}
