"""JoCoR (Wei et al., CVPR 2020): `loss_jocor`."""

import numpy as np
import torch

from .. import toy
from ..make import Made
from ..plain import descended, network, on_cpu, replaced
from ..reference import Numbers
from .co_teaching import FORGET

REPOSITORY = "hongxin001/JoCoR"
COMMIT = "86db3597ffccb401d395900b91794aab76fff639"

AGREEMENT = 0.3


def agreed() -> Numbers:
    with on_cpu(), replaced({(np, "argsort"): lambda errors: torch.argsort(errors, stable=True)}):
        from algorithm.loss import loss_jocor

        pair, x, y = [network(), network(4)], toy.inputs(), toy.labels()
        rows = np.arange(len(y))

        def loss(step: int) -> torch.Tensor:
            first, second = (item(x) for item in pair)
            result: torch.Tensor = loss_jocor(first, second, y, FORGET[step], rows, np.zeros(len(y)), AGREEMENT)[0]
            return result

        return descended(pair, loss)


MADE = {
    "jocor": Made(
        agreed,
        "algorithm/loss.py: loss_jocor",
        {"forget": 0.4, "gradual_percent": 200 / 3, "agreement": AGREEMENT},
    )
}
