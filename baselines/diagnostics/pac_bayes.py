"""PAC-Bayes measures of flatness, with and without the magnitude of weights, and a bound on the error.

sigma is the largest noise that leaves the training accuracy: the standard deviation of Gaussian noise on every trained
weight at which it falls by DISPLACEMENT, found by bisection on (0, 2]; sigma' the same for noise of the variance
sigma'^2 w_i^2 + EPSILON^2. With the initial weights w0, omega weights and m training rows (Jiang et al.):

    flatness      1 / sigma^2                               mag_flatness   1 / sigma'^2
    init          |w - w0|^2 / 4 sigma^2 + log(m / sigma) + 10
    orig          |w|^2 / 4 sigma^2 + log(m / sigma) + 10
    mag_init      1/4 sum_i log [(EPSILON^2 + (sigma'^2 + 1) |w - w0|^2 / omega)
                                 / (EPSILON^2 + sigma'^2 (w_i - w0_i)^2)] + log(m / sigma') + 10

All trained parameters count as weights. The code of Dziugaite et al. 2020, to which these formulas were held, leaves
biases out of them, folds batch normalisation into convolutions, and gives sqrt(value / m).

`bound` is an upper bound at confidence 1 - DELTA on the error of the network with the noise sigma: the p with

    kl(noisy training error, p) = (|w - w0|^2 / 2 sigma^2 + log(2 sqrt(m) GRID / DELTA)) / m

(Maurer 2004; GRID values of sigma can be chosen). The noisy error is an estimate from DRAWS draws and the diagnosed
rows. The less `bound` exceeds the error, the tighter. Gastpar et al. prove that no bound of the training rows and the
hypothesis alone is tight for all algorithms and distributions in the overparameterised setting; this one depends on the
initial weights too. Values near 1 say nothing of the network.
"""

import math

import torch
from torch import Tensor

from ._subject import Subject

CITATION = (
    "Jiang, Neyshabur, Mobahi, Krishnan and Bengio, Fantastic Generalization Measures and Where to Find Them, ICLR "
    "2020 (arXiv:1912.02178); Dziugaite et al., In Search of Robust Measures of Generalization, NeurIPS 2020 "
    "(arXiv:2010.11924); Gastpar, Nachum, Shafer and Weinberger, Fantastic Generalization Measures are Nowhere to be "
    "Found, ICLR 2024 (arXiv:2309.13658); Maurer, A Note on the PAC Bayesian Theorem, 2004 (arXiv:cs/0411099)"
)
TASKS = ("classification",)
DISPLACEMENT, DEPTH, DRAWS = 0.1, 10, 5
GRID = 1 << DEPTH
EPSILON = 1e-3
DELTA = 0.05


def measure(subject: Subject) -> dict[str, Tensor]:
    """flatness, init, orig, mag_flatness, mag_init and bound, each (K,)."""
    weights = [parameter.detach().clone() for parameter in subject.parameters]
    initial_network = subject.stack.only(range(subject.replicas)).fresh()
    start = [parameter for parameter in initial_network.parameters() if parameter.requires_grad]
    flat, initial = (torch.cat([w.detach().double().flatten(1) for w in each], 1) for each in (weights, start))
    rows = len(subject.stack.algorithm.about.data)
    base = _count_errors(subject)
    sigma, noisy = find_sigma(subject, weights, base, 0.0)
    own_sigma, _ = find_sigma(subject, weights, base, EPSILON)
    moved = (flat - initial).square()
    change, norm = moved.sum(1), flat.square().sum(1)
    mean_change = ((own_sigma**2 + 1) * change / flat.shape[1] + EPSILON**2)[:, None]
    ratio = mean_change / (EPSILON**2 + own_sigma[:, None] ** 2 * moved)
    confidence = math.log(2 * math.sqrt(rows) * GRID / DELTA)
    return {
        "flatness": sigma**-2,
        "init": change / (4 * sigma**2) + (rows / sigma).log() + 10,
        "orig": norm / (4 * sigma**2) + (rows / sigma).log() + 10,
        "mag_flatness": own_sigma**-2,
        "mag_init": ratio.log().sum(1) / 4 + (rows / own_sigma).log() + 10,
        "bound": invert_kl(noisy, (change / (2 * sigma**2) + confidence) / rows),
    }


def _count_errors(subject: Subject) -> Tensor:
    """The training error with the current weights, (K,)."""
    return (subject.logits().argmax(2) != subject.classes).double().mean(1)


@torch.no_grad()
def find_sigma(subject: Subject, weights: list[Tensor], base: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """sigma (or sigma' where epsilon is above 0) and the mean error with that noise, each (K,)."""
    low, high = torch.zeros_like(base), torch.full_like(base, 2.0)
    errors = base
    for step in range(DEPTH):
        sigma = (low + high) / 2 if step else high
        errors = _compute_noisy_errors(subject, weights, sigma, epsilon)
        below = errors - base <= DISPLACEMENT
        low, high = torch.where(below, sigma, low), torch.where(below, high, sigma)
    sigma = torch.where(low > 0, low, high)
    errors = _compute_noisy_errors(subject, weights, sigma, epsilon)
    subject.set_parameters(weights)
    return sigma, errors


def _compute_noisy_errors(subject: Subject, weights: list[Tensor], sigma: Tensor, epsilon: float) -> Tensor:
    """The mean training error over draws of the noise, (K,)."""
    scales = [sigma.view(-1, *[1] * (weight.ndim - 1)).to(weight) for weight in weights]
    if epsilon:
        pairs = zip(scales, weights, strict=True)
        scales = [((scale * weight).square() + epsilon**2).sqrt() for scale, weight in pairs]
    errors = []
    for draw in range(DRAWS):
        noise = subject.draw_noise("pac_bayes", draw)
        subject.set_parameters(w + scale * own for w, scale, own in zip(weights, scales, noise, strict=True))
        errors.append(_count_errors(subject))
    return torch.stack(errors).mean(0)


def invert_kl(error: Tensor, budget: Tensor) -> Tensor:
    """The largest p in [error, 1] with kl(error, p) <= budget, for Bernoulli distributions; each (K,)."""
    low, high = error.clone(), torch.ones_like(error)
    for _ in range(60):
        p = (low + high) / 2
        kl = torch.special.xlogy(error, error / p) + torch.special.xlogy(1 - error, (1 - error) / (1 - p))
        low, high = torch.where(kl <= budget, p, low), torch.where(kl <= budget, high, p)
    return low
