"""Balanced softmax: the log frequency of each class is added to its logit in the training loss.

    -log (n_y e^(z_y) / sum_c n_c e^(z_c)),  n_c the weight of all training rows with label c

Ren et al., NeurIPS 2020, equation 4 (also Menon et al., ICLR 2021, equation 10, at tau = 1). In evaluation the logits
are used unchanged, which is right where all classes are equally frequent. A class without rows is never predicted in
training.
"""

from typing import Any

from torch import Tensor

from ..training.losses import cross_entropy
from . import EmpiricalRisk, StepState
from ._rows import compute_log_frequencies

KIND = "domain"
CITATION = "Ren et al., Balanced meta-softmax for long-tailed visual recognition, NeurIPS 2020 (arXiv:2007.10740)"
SETTINGS: dict[str, Any] = {}


class Algorithm(EmpiricalRisk):
    prior: Tensor

    def set_up(self) -> None:
        self.register_buffer("prior", compute_log_frequencies(self.about))

    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        return cross_entropy(logits + self.prior[:, None].to(logits.dtype), target)
