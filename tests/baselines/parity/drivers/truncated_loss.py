"""The truncated loss in wide use (of Zhang and Sabuncu, NeurIPS 2018): `TruncatedLoss`, whose choice of rows is made anew
before every step."""

from torch import Tensor

from .. import toy
from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "AlanChou/Truncated-Loss"
COMMIT = "fef5908729a8e8446eb2d4ec327664cc6b11d6c6"

Q, K = 0.6, 0.35


def truncated() -> Numbers:
    with on_cpu():
        from TruncatedLoss import TruncatedLoss

        rows = toy.ENVIRONMENTS * toy.ROWS
        built = TruncatedLoss(Q, K, rows)

        def loss(logits: Tensor, label: Tensor, step: int) -> Tensor:
            places = range(rows)
            built.update_weight(logits.detach(), label, places)
            return built(logits, label, places) + (1 - K**Q) / Q

        return with_loss(loss)


MADE = {
    "gce": Made(
        truncated,
        "TruncatedLoss.py: TruncatedLoss",
        {"q": Q, "truncation": K, "start": 0.0},
        remark="rows are chosen before every step; a constant that it leaves out is added to its loss",
    )
}
