"""Co-teaching+ (Yu et al., ICML 2019): `loss_coteaching_plus`."""

from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import toy
from ..make import Made
from ..plain import descended, network, on_cpu, replaced
from ..reference import Numbers

REPOSITORY = "xingruiyu/coteaching_plus"
COMMIT = "a68ed612885a258d8fbfe3a594b6474b27e3b575"

FORGET = (0.0, 0.2, 0.4)
"""Of each step: a share that rises to the last over two of the three."""


def taught() -> Numbers:
    with on_cpu(), replaced({(np, "argsort"): lambda errors: torch.argsort(errors, stable=True)}):
        losses = import_module("loss")
        single = losses.loss_coteaching

        def scaled(first: Tensor, second: Tensor, label: Tensor, forget: float, *more: Any) -> Any:
            stored = int((1 - forget) * len(label)) or len(label)
            result = single(first, second, label, forget, *more)
            return result[0] * stored, result[1] * stored, *result[2:]

        pair, x, y = [network(), network(4)], toy.inputs(), toy.labels()
        rows = np.arange(1, len(y) + 1)

        def loss(step: int) -> Tensor:
            logits = [item(x) for item in pair]
            given = FORGET[step], rows, np.zeros(len(y) + 1), 0
            with replaced({(losses, "loss_coteaching"): scaled, (losses.F, "softmax"): lambda given, dim: given}):
                result = losses.loss_coteaching_plus(*logits, y, *given)
            total: Tensor = result[0] + result[1]
            return total

        return descended(pair, loss)


MADE = {
    "co_teaching_plus": Made(
        taught,
        "loss.py: loss_coteaching_plus",
        {"forget": 0.4, "gradual_percent": 200 / 3, "warm_percent": 0},
        remark="its losses are of logits, multiplied by the number of rows that are kept; rows are counted from 1",
    )
}
