"""Adaptive sharpness: the increase of the loss when each weight is perturbed in proportion to its size.

    average:  E L(w + |w| d) - L(w),  d ~ N(0, sigma^2)
    worst:    max L(w + |w| d) - L(w)  over |d|_2 <= rho

elementwise over all trained parameters, with the mean loss over the rows. Andriushchenko et al., equation 1, without
their normalisation of logits; the worst case is Kwon et al.'s, equation 3. The maximum is not known: `worst` is the
best that projected gradient ascent finds from the first-order solution, and 0 where it finds none, so it is a lower
bound.

`layer_1`, .. are the average sharpness if the weights of one layer only are perturbed, and `layer_most` that of the
sharpest layer. Runs of `wise-ft` with equal seeds and other values of `alpha` are points of one path from early to last
weights, along which both can be compared.
"""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..algorithms.lines import find_parameter_depths
from ..training.losses import compute_gradients
from ._subject import Subject

CITATION = (
    "Andriushchenko, Croce, Müller, Hein and Flammarion, A Modern Look at the Relationship between Sharpness and "
    "Generalization, ICML 2023 (arXiv:2302.07011); Kwon, Kim, Park and Choi, ASAM: Adaptive Sharpness-Aware "
    "Minimization for Scale-Invariant Learning of Deep Neural Networks, ICML 2021 (arXiv:2102.11600); by layer: "
    "Abdollahpoorrostam, In Search of the Successful Interpolation: On the Role of Sharpness in CLIP Generalization, "
    "2024 (arXiv:2410.16476)"
)
TASKS = ("classification", "sequence")
SIGMA, DRAWS = 0.1, 20
"""The standard deviation of the random moves in the average, relative to each weight, and the number of draws."""
RHO, ASCENTS = 0.5, 20
"""The radius of the worst case (Kwon et al.'s for CIFAR-10), and the number of ascent steps."""
STRIDE = 0.2
"""The length of an ascent step, as a share of rho."""


def measure(subject: Subject) -> dict[str, Tensor]:
    """average, worst, layer_1, .. and layer_most, each (K,), in nats (or squared error)."""
    weights = [parameter.detach().clone() for parameter in subject.parameters]
    with torch.no_grad():
        base_loss = subject.mean_loss().double()
    parameters = zip(find_parameter_depths(subject.stack.network), subject.stack.network.parameters(), strict=True)
    depths = [depth for depth, parameter in parameters if parameter.requires_grad]
    values = {
        f"layer_{number}": _compute_average(subject, weights, [depth == own for own in depths]) - base_loss
        for number, depth in enumerate(sorted(set(depths)), start=1)
    }
    values |= {
        "layer_most": torch.stack(list(values.values())).amax(0),
        "average": _compute_average(subject, weights, [True] * len(weights)) - base_loss,
        "worst": _compute_worst(subject, weights, base_loss),
    }
    subject.set_parameters(weights)
    return values


def _move_parameters(subject: Subject, weights: list[Tensor], shares: Iterable[Tensor]) -> None:
    """Set the parameters to w + |w| d."""
    subject.set_parameters(weight + weight.abs() * share for weight, share in zip(weights, shares, strict=True))


@torch.no_grad()
def _compute_average(subject: Subject, weights: list[Tensor], moved: list[bool]) -> Tensor:
    """The mean loss (K,) over random moves of those weights that are `moved`."""
    total = torch.zeros(subject.replicas, dtype=torch.float64, device=weights[0].device)
    for draw in range(DRAWS):
        noise = subject.draw_noise("sharpness", draw)
        _move_parameters(subject, weights, (SIGMA * which * own for which, own in zip(moved, noise, strict=True)))
        total += subject.mean_loss()
    return total / DRAWS


def _compute_worst(subject: Subject, weights: list[Tensor], base_loss: Tensor) -> Tensor:
    """The rise of the loss at the worst point found, (K,)."""
    shares = [torch.zeros_like(weight) for weight in weights]
    best = torch.zeros_like(base_loss)
    for ascent in range(ASCENTS + 1):
        _move_parameters(subject, weights, shares)
        losses = subject.mean_loss()
        best = torch.maximum(best, losses.detach().double() - base_loss)
        by_share = [g * w.abs() for g, w in zip(compute_gradients(losses, subject.parameters), weights, strict=True)]
        reach = RHO if ascent == 0 else STRIDE * RHO
        uphill = _scale_values(by_share, reach / _compute_norm(by_share))
        shares = [share + step for share, step in zip(shares, uphill, strict=True)]
        shares = _scale_values(shares, (RHO / _compute_norm(shares)).clamp(max=1))
    _move_parameters(subject, weights, shares)
    with torch.no_grad():
        return torch.maximum(best, subject.mean_loss().double() - base_loss)


def _compute_norm(values: list[Tensor]) -> Tensor:
    """The norm of each replica's values, (K,), above 0 so that it can be a divisor."""
    norm = torch.stack([value.flatten(1).square().sum(1) for value in values]).sum(0).sqrt()
    return norm.clamp(min=torch.finfo(norm.dtype).tiny)


def _scale_values(values: list[Tensor], by: Tensor) -> list[Tensor]:
    """Each replica's values times its number, (K,)."""
    return [value * by.view(-1, *[1] * (value.ndim - 1)) for value in values]
