"""LAME: the predicted probabilities of a test batch are smoothed over similar rows; the network is unchanged.

    min over Z  sum_i KL(z_i | q_i) - sum_ij w_ij z_i . z_j,   by  z_i <- softmax(log q_i + sum_j w_ij z_j)

Boudiaf et al., CVPR 2022, equations 3 and 5: q are the softmax probabilities of the batch's rows, z begin there, and w
the similarity of rows by their normalised features f: e^(-|f_i - f_j|^2 / (2 s^2)), with s the mean distance to the
k-th of a row's nearest, itself the first (`rbf`, the released code's default); 1 where j is among the k nearest others
of i (`knn`); or f_i . f_j (`linear`). At most 100 rounds, until the energy changes by less than 1e-8 of itself, each
replica by its own. Training is empirical risk. Nothing is remembered, but the answer depends on which rows come
together: it gains where rows of one class do, and loses where they come mixed. As released, log q is that of q + 1e-10
and w is not made symmetric. There a row is excluded from its own neighbours as the nearest one, here by its place,
which differs only where two rows have equal features.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ._adaptive import TestTimeAdaptation

KIND = "domain"
CITATION = (
    "Boudiaf, Mueller, Ben Ayed and Bertinetto, Parameter-free online test-time adaptation, CVPR 2022 "
    "(arXiv:2201.05718)"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {"affinity": "rbf", "neighbours": 5}
"""affinity: `rbf`, `knn` or `linear`. neighbours: k; fewer where a batch is smaller."""
SEARCH: dict[str, Any] = {"affinity": ["choice", "rbf", "knn", "linear"], "neighbours": ["choice", 1, 3, 5]}
LIMITS = {"affinity": ("rbf", "knn", "linear"), "neighbours": "at least 1"}

ROUNDS = 100
STILL = 1e-8


class Algorithm(TestTimeAdaptation):
    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        features = network.encode(network.embed(*inputs))
        known = (network.head(features).softmax(-1) + 1e-10).log()
        alike = AFFINITIES[self.hyperparameters["affinity"]]
        near = alike(F.normalize(features, dim=-1), self.hyperparameters["neighbours"])
        return smooth_predictions(known, near).clamp(min=torch.finfo(known.dtype).tiny).log()


def compute_distances(rows: Tensor) -> Tensor:
    """Of rows (K, n, width) among each other, (K, n, n)."""
    return (rows[:, :, None] - rows[:, None]).norm(dim=-1)


def compute_gaussian_affinity(rows: Tensor, neighbours: int) -> Tensor:
    apart = compute_distances(rows)
    width = apart.sort(dim=-1)[0][..., min(neighbours, rows.shape[1]) - 1].mean(-1)[:, None, None]
    # Of rows that are all one, each is like every other.
    width = width.clamp(min=torch.finfo(rows.dtype).tiny ** 0.5)
    return torch.exp(-(apart**2) / (2 * width**2))


def compute_knn_affinity(rows: Tensor, neighbours: int) -> Tensor:
    apart = compute_distances(rows)
    apart = apart + torch.diag(torch.full_like(apart[0, 0], torch.inf))
    nearest = apart.argsort(dim=-1, stable=True)[..., : min(neighbours, rows.shape[1] - 1)]
    return torch.zeros_like(apart).scatter_(-1, nearest, 1.0)


def compute_linear_affinity(rows: Tensor, _: int) -> Tensor:
    return rows @ rows.transpose(1, 2)


AFFINITIES = {"rbf": compute_gaussian_affinity, "knn": compute_knn_affinity, "linear": compute_linear_affinity}
"""w (K, n, n) of normalised features (K, n, width), by k."""


def smooth_predictions(known: Tensor, near: Tensor) -> Tensor:
    """z (K, n, classes), from log q of the same shape and w (K, n, n)."""
    z, energy = known.softmax(-1), torch.full((len(known),), torch.inf, dtype=known.dtype, device=known.device)
    moves = torch.ones_like(energy, dtype=torch.bool)
    for turn in range(ROUNDS):
        pulled = near @ z
        z = torch.where(moves[:, None, None], (known + pulled).softmax(-1), z)
        now = (z * (z.clamp(min=1e-20).log() - known - pulled)).flatten(1).sum(1)
        if turn > 1:
            moves = moves & ((now - energy).abs() > STILL * energy.abs())
            if not bool(moves.any()):
                break
        energy = now
    return z
