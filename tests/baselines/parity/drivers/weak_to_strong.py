"""Weak-to-strong learning (Burns et al., ICML 2024): the auxiliary confidence loss."""

from .. import toy
from ..make import Made
from ..plain import network, on_cpu
from ..problems.steps import WEAK_CLASSES as CLASSES
from ..problems.steps import taught
from ..reference import Numbers

REPOSITORY = "openai/weak-to-strong"
COMMIT = "6b450f2cee3714d6f886e5e1910bac73633bf69a"


def confident() -> Numbers:
    with on_cpu():
        from weak_to_strong.loss import logconf_loss_fn

        built = network(classes=CLASSES)
        loss = logconf_loss_fn(0.6, 0.2)(built(toy.inputs()), taught(), 0.5)
        return {"loss": toy.loss_and_gradient(loss, [*built.parameters()])}


MADE = {
    "weak_to_strong": Made(
        confident,
        "weak_to_strong/loss.py: logconf_loss_fn",
        {"alpha": 0.6, "warmup": 0.2},
        "weak",
        remark="after the rise of its weight, which is another there",
    )
}
