"""Norms of the weights and the margin of the outputs, the parts of bounds on the generalisation error.

With the weights W_i as matrices (a convolution's first axis by the others; biases and gains do not count), and gamma
the 10th percentile over the training rows of their margins, the logit of the label less the largest other one:

    margin       gamma
    frobenius    sum_i |W_i|_F^2
    spectral     sum_i log |W_i|_2^2 - log gamma^2      (Jiang et al.: the product of spectral norms over the margin)
    bartlett     log of  prod_i s_i (sum_i (|W_i^T|_(2,1) / s_i)^(2/3))^(3/2) / gamma    with s_i = |W_i|_2

|W^T|_(2,1) is the sum of the norms of W's rows. `bartlett` is the logarithm of the spectral complexity over the margin
(their equation 1.2, reference matrices 0), which bounds the error of a fully connected network with ReLU up to the norm
of the data, logarithms and the number of rows; of other networks it is a measure and no bound. Higher norms or less
margin give a weaker bound. The last two are NaN where gamma is not above 0: the rows are then not fitted.
"""

import torch
from torch import Tensor

from . import NotApplicable
from ._subject import Subject

CITATION = (
    "Bartlett, Foster and Telgarsky, Spectrally-normalized margin bounds for neural networks, NeurIPS 2017 "
    "(arXiv:1706.08498); Jiang, Neyshabur, Mobahi, Krishnan and Bengio, Fantastic Generalization Measures and Where to "
    "Find Them, ICLR 2020 (arXiv:1912.02178)"
)
TASKS = ("classification",)
QUANTILE = 0.1


def measure(subject: Subject) -> dict[str, Tensor]:
    """margin, frobenius, spectral and bartlett, each (K,)."""
    weights = [weight.detach().double().flatten(2) for weight in subject.parameters if weight.ndim > 2]
    if not weights:
        raise NotApplicable("its networks have no matrices of weights")
    margin = torch.quantile(_compute_margins(subject), QUANTILE, dim=1)
    log_margin = torch.where(margin > 0, margin, torch.nan).log()
    norms = torch.stack([torch.linalg.matrix_norm(weight, 2) for weight in weights])
    rows = torch.stack([weight.norm(dim=2).sum(1) for weight in weights])
    return {
        "margin": margin,
        "frobenius": torch.stack([weight.square().sum((1, 2)) for weight in weights]).sum(0),
        "spectral": 2 * (norms.log().sum(0) - log_margin),
        "bartlett": norms.log().sum(0) + 1.5 * (rows / norms).pow(2 / 3).sum(0).log() - log_margin,
    }


def _compute_margins(subject: Subject) -> Tensor:
    """The margin of each row, (K, n) float64."""
    logits = subject.logits()
    own = subject.classes.expand(subject.replicas, -1)[..., None]
    others = logits.scatter(2, own, -torch.inf).amax(2)
    return logits.gather(2, own)[..., 0] - others
