"""Learning from failure (Nam et al., NeurIPS 2020): its averages of losses and its biased loss, put together as `train.py`
does."""

import torch.nn.functional as F
from torch import Tensor

from .. import toy
from ..make import Made
from ..plain import descended, network, on_cpu
from ..reference import Numbers

REPOSITORY = "alinlab/LfF"
COMMIT = "e66796ec117ea52d2e44176055b7ef7959680a1b"

Q, EMA_SHARE = 0.6, 0.8


def debiased() -> Numbers:
    with on_cpu():
        from module.loss import GeneralizedCELoss
        from util import EMA

        pair, x, y = [network(), network(4)], toy.inputs(), toy.labels()
        rows = range(len(y))
        averages = [EMA(y, EMA_SHARE) for _ in pair]
        biased = GeneralizedCELoss(Q)

        def relative(average: EMA, errors: Tensor) -> Tensor:
            average.update(errors.detach(), rows)
            most = Tensor([average.max_loss(label) for label in range(toy.CLASSES)])
            result: Tensor = average.parameter[rows] / most[y]
            return result

        def loss(step: int) -> Tensor:
            own, easy = (F.cross_entropy(item(x), y, reduction="none") for item in pair)
            hard, soft = relative(averages[1], easy), relative(averages[0], own)
            weight = hard / (hard + soft + 1e-8)
            result: Tensor = biased(pair[1](x), y).mean() / Q + (own * weight).mean()
            return result

        return {"parameters": descended(pair, loss)["parameters"]}


MADE = {
    "lff": Made(
        debiased,
        "util.py: EMA, module/loss.py: GeneralizedCELoss",
        {"q": Q, "ema": EMA_SHARE},
        "weights",
        remark="its generalised loss is divided by q, and has the paper's gradient, not its value",
    )
}
