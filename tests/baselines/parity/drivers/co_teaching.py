"""Co-teaching (Han et al., NeurIPS 2018): `loss_coteaching`."""

import numpy as np
import torch

from .. import toy
from ..make import Made
from ..plain import descended, network, on_cpu, replaced
from ..reference import Numbers

REPOSITORY = "bhanML/Co-teaching"
COMMIT = "7c7fbe23e15e517db76a0882b6d108e4508e09d6"

FORGET = (0.0, 0.2, 0.4)
"""Of each step: a share that rises to the last over two of the three."""


def taught() -> Numbers:
    with on_cpu(), replaced({(np, "argsort"): lambda errors: torch.argsort(errors, stable=True)}):
        from loss import loss_coteaching

        pair, x, y = [network(), network(4)], toy.inputs(), toy.labels()
        rows = np.arange(len(y))

        def loss(step: int) -> torch.Tensor:
            first, second = (item(x) for item in pair)
            result = loss_coteaching(first, second, y, FORGET[step], rows, np.zeros(len(y)))
            return (result[0] + result[1]) * int((1 - FORGET[step]) * len(y))

        return descended(pair, loss)


MADE = {
    "co_teaching": Made(
        taught,
        "loss.py: loss_coteaching",
        {"forget": 0.4, "gradual_percent": 200 / 3},
        remark="its losses are multiplied by the number of rows that are kept, by which it divides their mean again",
    )
}
