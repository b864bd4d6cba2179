"""Balanced softmax (Ren et al., NeurIPS 2020): `balanced_softmax_loss`."""

import torch

from .. import toy
from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "jiawei-ren/BalancedMetaSoftmax-Classification"
COMMIT = "34a61e432881816c2da14d577d6ed63501288f5f"


def balanced() -> Numbers:
    with on_cpu():
        from loss.BalancedSoftmaxLoss import balanced_softmax_loss

        counts = torch.bincount(toy.labels())
        return with_loss(lambda logits, label, step: balanced_softmax_loss(label, logits, counts, "mean"))


MADE = {"balanced_softmax": Made(balanced, "loss/BalancedSoftmaxLoss.py: balanced_softmax_loss", {})}
