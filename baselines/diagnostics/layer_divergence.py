"""How far a layer's values on validation rows lie from those on training rows, by layer.

    wasserstein   the 1-Wasserstein distance of the two samples (equally many rows, Euclidean distance, exact), over the
                  root mean squared distance of the training rows from their mean
    kl            KL(train | validation) of Gaussians with the samples' moments along the training rows' DIRECTIONS
                  leading principal directions, with RIDGE of their mean variance added to each direction's

He and Goldfeld bound the generalisation error by the divergence of a layer's training and test distributions: by KL, in
a bound that falls with depth, or by the Wasserstein distance, which may be least in an inner layer, the funnel.
`wasserstein` and `kl` are the least over the hidden layers, `wasserstein_1`, .. and `kl_1`, .. those of each. The test
rows are in-distribution validation rows. Even for equal distributions both are above 0 on few rows.
"""

import torch
from torch import Tensor

from . import NotApplicable
from ._subject import Subject

CITATION = (
    "He and Goldfeld, Information-Theoretic Generalization Bounds for Deep Neural Networks, 2024 (arXiv:2404.03176)"
)
TASKS = ("classification",)
DIRECTIONS = 5
RIDGE = 1e-3


def measure(subject: Subject) -> dict[str, Tensor]:
    """wasserstein and kl (nats), and both by layer: each (K,); NaN if a layer's values are all the same."""
    if subject.validation is None:
        raise NotApplicable("there are no validation rows")
    rows = min(len(subject), len(subject.validation))
    if rows < 3:
        raise NotApplicable("it needs three training and validation rows")
    values: dict[str, list[Tensor]] = {"wasserstein": [], "kl": []}
    for train, other in zip(subject.layers, subject.compute_layers(subject.validation), strict=True):
        # Rows are in the order of the data: those that are left out lie evenly among the others.
        train, other = (x[:, torch.arange(rows, device=x.device) * x.shape[1] // rows] for x in (train, other))
        values["wasserstein"].append(compute_wasserstein(train, other))
        values["kl"].append(compute_gaussian_kl(train, other))
    by_layer = {f"{name}_{at + 1}": value for name, each in values.items() for at, value in enumerate(each)}
    return by_layer | {name: torch.stack(each).amin(0) for name, each in values.items()}


def compute_wasserstein(x: Tensor, y: Tensor) -> Tensor:
    """The 1-Wasserstein distance of samples (K, n, width) over the spread of the first, (K,)."""
    from scipy.optimize import linear_sum_assignment

    cost = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    least = [own[linear_sum_assignment(own.cpu().numpy())].mean() for own in cost]
    return torch.stack(least) / (x - x.mean(1, keepdim=True)).square().sum(2).mean(1).sqrt()


def compute_gaussian_kl(x: Tensor, y: Tensor) -> Tensor:
    """KL of the Gaussian with the moments of x from that of y, samples (K, n, width), in x's leading directions:
    (K,)."""
    centre = x.mean(1, keepdim=True)
    directions = torch.linalg.svd(x - centre, full_matrices=False).Vh[:, :DIRECTIONS].mT
    x, y = (x - centre) @ directions, (y - centre) @ directions
    ridge = RIDGE * x.square().mean((1, 2))[:, None, None] * torch.eye(x.shape[2], dtype=x.dtype, device=x.device)
    shift = y.mean(1)
    first = x.mT @ x / x.shape[1] + ridge
    spread = y - shift[:, None]
    second = spread.mT @ spread / y.shape[1] + ridge
    # At constant features there is no direction: 0 / 0 below.
    inverse = torch.where(torch.linalg.det(second)[:, None, None] > 0, torch.linalg.pinv(second), torch.nan)
    trace = (inverse @ first).diagonal(dim1=1, dim2=2).sum(1)
    distance = (shift[:, None] @ inverse @ shift[..., None])[:, 0, 0]
    return 0.5 * (trace + distance - x.shape[2] + torch.logdet(second) - torch.logdet(first))
