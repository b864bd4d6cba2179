"""The bi-tempered logistic loss (Amid et al., NeurIPS 2019): its JAX code, whose normalisation is given more rounds than
its default of five."""

import jax
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .. import toy
from ..make import Made
from ..plain import with_loss
from ..reference import Numbers

REPOSITORY = "google/bi-tempered-loss"
COMMIT = "1c65c7770a3aa76a9515c67f15cfdbaad0e8cf88"
FOLDER = "jax"

T1, T2 = 0.6, 1.7
ROUNDS = 100


def tempered() -> Numbers:
    jax.config.update("jax_enable_x64", True)
    import loss

    label = F.one_hot(toy.labels(), toy.CLASSES).double().numpy()

    class Tempered(torch.autograd.Function):
        @staticmethod
        def forward(context: object, logits: Tensor) -> Tensor:
            scores = jax.numpy.asarray(logits.detach().numpy())
            built = loss.bi_tempered_logistic_loss
            value, back = jax.vjp(lambda scores: built(scores, label, T1, T2, 0.0, ROUNDS).mean(), scores)
            context.save_for_backward(torch.from_numpy(np.array(back(jax.numpy.ones(()))[0])))  # type: ignore[attr-defined]
            return torch.tensor(float(value), dtype=torch.float64)

        @staticmethod
        def backward(context: object, *slopes: Tensor) -> Tensor:
            (result,) = context.saved_tensors  # type: ignore[attr-defined]
            gradient: Tensor = slopes[0] * result
            return gradient

    return with_loss(lambda logits, labels, step: Tempered.apply(logits))


MADE = {
    "bi_tempered": Made(
        tempered,
        "jax/loss.py: bi_tempered_logistic_loss",
        {"t1": T1, "t2": T2},
        within=1e-8,
        remark="its fixed point is sought for 100 rounds, in place of five; it adds 1e-10 to labels",
    )
}
