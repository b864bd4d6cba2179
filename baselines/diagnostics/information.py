"""Feature information: how much a linear probe learns from the features about the label, and about the environment.

    I_V(F -> Y) = H_V(Y) - H_V(Y | F)

the V-information of Xu et al. (definition 2) with V the linear softmax probes: H_V(Y | F) is the cross-entropy of a
probe on rows that it was not fitted on, H_V(Y) that of the label's frequencies, in nats. One half of the rows, drawn
by the replica's name, fits the probe, the other is predicted. On few rows a probe may do worse than the frequencies:
a value below 0 means that the probe found no information.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ..replicas.rng import derive_stream, draw_permutations
from . import NotApplicable
from ._subject import Subject

CITATION = (
    "Xu, Zhao, Song, Stewart and Ermon, A Theory of Usable Information under Computational Constraints, ICLR 2020 "
    "(arXiv:2002.10689)"
)
TASKS = ("classification", "sequence")
PENALTY = 1e-3
"""Half of this times the squared norm of the probe is added to its mean loss."""
STEPS = 1000
"""The number of Nesterov's accelerated steps; the objective's condition number is at most 1 + 1 / (2 PENALTY)."""


def measure(subject: Subject) -> dict[str, Tensor]:
    """label (for classes) and environment (if there are several), each (K,), in nats."""
    if len(subject) < 4:
        raise NotApplicable("it needs four training rows")
    values = {}
    if subject.task == "classification":
        values["label"] = estimate_information(subject.features, subject.classes, subject.stack.keys)
    try:
        groups = subject.groups
    except NotApplicable:
        if not values:
            raise
    else:
        values["environment"] = estimate_information(subject.features, groups, subject.stack.keys)
    return values


def estimate_information(features: Tensor, labels: Tensor, keys: Tensor) -> Tensor:
    """The information of features (K, n, width) about labels (n,), in nats: (K,)."""
    order = draw_permutations(derive_stream(keys, "information"), len(labels))
    half = len(labels) // 2
    names, targets = torch.unique(labels, return_inverse=True)
    training_half, test_half = (
        (features.gather(1, some[..., None].expand(-1, -1, features.shape[2])), targets[some])
        for some in (order[:, :half], order[:, half:])
    )
    scale = Scaling(training_half[0])
    weights = fit_probe(scale(training_half[0]), training_half[1], len(names))
    knowing = (scale(test_half[0]) @ weights).log_softmax(-1)
    # Add one to each count, so that a label that is missing in the first half costs a finite number of nats.
    counts = F.one_hot(training_half[1], len(names)).sum(1).double() + 1
    guessing = (counts / counts.sum(1, keepdim=True)).log()
    gained = knowing.gather(2, test_half[1][..., None])[..., 0] - guessing.gather(1, test_half[1])
    return gained.mean(1)


class Scaling:
    """Features centred and divided by one number so that their covariance's largest eigenvalue is 1, and a column of
    ones for the intercept."""

    def __init__(self, features: Tensor) -> None:
        self.centre = features.mean(1, keepdim=True)
        largest = torch.linalg.matrix_norm(features - self.centre, 2) / features.shape[1] ** 0.5
        self.by = largest.clamp(min=torch.finfo(largest.dtype).tiny)[:, None, None]

    def __call__(self, features: Tensor) -> Tensor:
        return F.pad((features - self.centre) / self.by, (0, 1), value=1.0)


def fit_probe(inputs: Tensor, targets: Tensor, classes: int) -> Tensor:
    """The weights (K, columns, classes) with the least mean cross-entropy plus PENALTY / 2 |weights|^2 for inputs
    (K, n, columns), whose second moments have eigenvalues of at most 1, and targets (K, n)."""
    one_hot = F.one_hot(targets, classes).to(inputs.dtype)
    # The softmax's curvature is at most 1 / 2.
    steepest = 0.5 + PENALTY
    speed = (steepest**0.5 - PENALTY**0.5) / (steepest**0.5 + PENALTY**0.5)
    weights = inputs.new_zeros(len(inputs), inputs.shape[2], classes)
    before = weights
    for _ in range(STEPS):
        ahead = weights + speed * (weights - before)
        slope = inputs.mT @ ((inputs @ ahead).softmax(-1) - one_hot) / inputs.shape[1] + PENALTY * ahead
        before, weights = weights, ahead - slope / steepest
    return weights
