"""Diversify and disambiguate (Lee et al., ICLR 2023): its loss on unlabelled rows. Needs einops."""

import torch.nn.functional as F
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..plain import descended, on_cpu
from ..reference import Numbers

REPOSITORY = "yoonholee/DivDis"
COMMIT = "b9de1a637949594054240254f667063788ee1573"

HEADS, DIVERSITY = 3, 2.0


def apart() -> Numbers:
    with on_cpu():
        from divdis import DivDisLoss

        built = nn.Sequential(nn.Linear(toy.INPUTS, toy.WIDTH), nn.ReLU(), nn.Linear(toy.WIDTH, HEADS * toy.CLASSES))
        toy.fill(built.parameters())
        criterion = DivDisLoss(HEADS)
        x, y, shifted = toy.inputs(), toy.labels(), toy.inputs(2.0)

        def loss(step: int) -> Tensor:
            risks = [F.cross_entropy(head, y) for head in built(x).chunk(HEADS, dim=1)]
            result: Tensor = sum(risks) / HEADS + DIVERSITY * criterion(built(shifted))
            return result

        return descended([built], loss)


MADE = {
    "divdis": Made(
        apart,
        "divdis.py: DivDisLoss",
        {"heads": HEADS, "diversity": DIVERSITY, "prior": 0.0},
        "shifted",
        remark="without the divergence from the labels' frequencies, which its subpopulation script alone has",
    )
}
