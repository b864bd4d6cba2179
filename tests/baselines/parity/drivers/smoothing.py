"""Label smoothing at any rate (Wei et al., ICML 2022): `loss_gls`."""

from ..make import Made
from ..plain import on_cpu, with_loss
from ..reference import Numbers

REPOSITORY = "UCSC-REAL/negative-label-smoothing"
COMMIT = "05078f675b42c13c89219eb8f2238bd4d794d83d"


def smoothed(rate: float) -> Numbers:
    with on_cpu():
        from loss import loss_gls

        return with_loss(lambda logits, label, step: loss_gls(step, logits, label, rate))


MADE = {
    "label_smoothing": Made(lambda: smoothed(-0.4), "loss.py: loss_gls", {"rate": -0.4}),
    "label_smoothing.positive": Made(lambda: smoothed(0.2), "loss.py: loss_gls", {"rate": 0.2}),
}
