"""Confident learning (Northcutt et al., JAIR 2021): the authors' package."""

import numpy as np

from ..make import Made
from ..plain import replaced
from ..problems.values import labels, probabilities
from ..reference import Numbers

REPOSITORY = "cleanlab/cleanlab"
COMMIT = "750625747de1b26d8530954f51f0530bd0b51d3c"


def counted() -> Numbers:
    from cleanlab import count, filter

    output, given = probabilities().numpy(), labels().numpy()
    confident = count.compute_confident_joint(given, output, calibrate=False)
    with replaced({(count, "round_preserving_row_totals"): lambda joint: joint}):
        joint = count.estimate_joint(given, output)
    with replaced({(filter, "_reduce_issues"): lambda **_: np.zeros(len(given), bool)}):
        pruned = filter.find_label_issues(given, output, filter_by="prune_by_noise_rate", n_jobs=1)
    return {"confident": confident.tolist(), "joint": joint.tolist(), "pruned": pruned.astype(int).tolist()}


MADE = {
    "confident_learning": Made(
        counted,
        "cleanlab/count.py: compute_confident_joint, estimate_joint, cleanlab/filter.py: find_label_issues",
        {},
        "confident",
        remark="of given probabilities; its joint is not rounded, and it spares no row that is answered as labelled",
    )
}
