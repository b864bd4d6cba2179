"""Early-learning regularisation (Liu et al., NeurIPS 2020): `elr_loss`."""

from types import SimpleNamespace

from .. import toy
from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "shengliu66/ELR"
COMMIT = "934af53434a336b6db80d05d7649d23216e8ca6d"


def regularised() -> Numbers:
    config = {"train_loss": {"args": {"lambda": 2.0}}}
    with on_cpu(parse_config={"ConfigParser": SimpleNamespace(get_instance=lambda: config)}):
        from ELR.model.loss import elr_loss

        rows = range(toy.ENVIRONMENTS * toy.ROWS)
        built = elr_loss(len(rows), toy.CLASSES, 0.6)
        return with_loss(lambda logits, label, step: built(rows, logits, label))


MADE = {"elr": Made(regularised, "ELR/model/loss.py: elr_loss", {"strength": 2.0, "keep": 0.6})}
