"""Deep feature reweighting: the last layer is retrained on group-balanced validation rows.

The network is trained by empirical risk. Then the features of the in-distribution validation rows are standardised,
and a linear head is fitted by multinomial logistic regression with an l1 penalty to as many of them from every group
(class x environment) as the smallest group has; the head used is the mean over `draws` such subsets (Kirichenko et
al., DFR-Val; the released code standardises by training features). Each fit minimises sum over rows of CE + |W|_1 /
inverse_strength, the biases free: scikit-learn's C. Where validation rows name no environments, classes are balanced.
A selection rule that reads the same rows afterwards judges the head by what it was fitted to. Known trap: a head
fitted to the rows that trained the features gains little.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..replicas.rng import derive_stream, draw_permutations
from . import Data, EmpiricalRisk
from ._head import read_head_shape
from ._plain import compute_shared_features

KIND = "domain"
CITATION = (
    "Kirichenko, Izmailov and Wilson, Last layer re-training is sufficient for robustness to spurious correlations, "
    "ICLR 2023 (arXiv:2204.02937)"
)
TOUCHES = ("train", "groups", "id_val")
SETTINGS: dict[str, Any] = {"inverse_strength": 1.0, "draws": 10}
"""inverse_strength: C, of the l1 penalty. draws: balanced
subsets, whose heads are averaged."""
SEARCH: dict[str, Any] = {"inverse_strength": ["choice", 1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01]}

ROUNDS = 2000
"""The most steps of a head's fit."""
STILL = 1e-6
"""A head has converged when no weight moves by more in a step."""


class Algorithm(EmpiricalRisk):
    @torch.no_grad()
    def finish(self, network: Any, data: Data, answer: Callable[..., Tensor]) -> None:
        replicas, classes, _ = read_head_shape(network)
        val = data.held_out["id_val"]
        features = compute_shared_features(network, val.inputs, replicas, self.rng).double()
        mean, deviation = features.mean(1), features.std(1, correction=0)
        deviation = torch.where(deviation > 0, deviation, 1.0)
        group = val.target[0] if val.group is None else val.group * classes + val.target[0]
        rows = self.balanced(group)
        strength = 1 / (self.hyperparameters["inverse_strength"].double() * rows[:, :, 0].sum(1))
        target = F.one_hot(val.target[0], classes).double()
        scaled = (features - mean[:, None]) / deviation[:, None]
        # A replica whose features are not numbers must not stop the others.
        weight, bias = fit_heads(scaled.nan_to_num(0.0, 0.0, 0.0), target, rows, strength)
        weight = weight / deviation[:, None]
        network.head.weight.copy_(weight)
        if network.head.bias is not None:
            network.head.bias.copy_(bias - (weight @ mean[..., None])[..., 0])

    def balanced(self, group: Tensor) -> Tensor:
        """Which rows are in each subset, (K, n, draws) of 0 and 1: as many of every group as the smallest has. group:
        (n,)."""
        assert self.rng is not None
        keys, draws = self.rng.keys, self.hyperparameters["draws"]
        subsets = torch.zeros(len(keys), len(group), draws, dtype=torch.float64, device=group.device)
        counts = torch.bincount(group)
        least = counts[counts > 0].min()
        for name in counts.nonzero()[:, 0].tolist():
            rows = (group == name).nonzero()[:, 0]
            for draw in range(draws):
                order = draw_permutations(derive_stream(keys, "subset", name, draw), len(rows))
                subsets[:, rows, draw] = (order < least).double()
        return subsets


def fit_heads(x: Tensor, y: Tensor, rows: Tensor, strength: Tensor) -> tuple[Tensor, Tensor]:
    """Heads of least mean cross-entropy + strength |W|_1, the mean over subsets: weights (K, classes, d) and biases
    (K, classes).

    x: (K, n, d) centred and scaled; y: (n, classes) one-hot; rows: (K, n, D), the subsets, 0 or 1; strength: (K,).
    FISTA (Beck and Teboulle, SIAM J. Imaging Sciences 2009), step 1 / L: the Hessian of the mean cross-entropy is at
    most half the largest eigenvalue of the second moments. A converged replica is not updated, so that its result does
    not depend on the others fitted with it."""
    replicas, _, subsets = rows.shape
    classes = y.shape[-1]
    x = torch.cat([x, torch.ones_like(x[..., :1])], dim=-1)
    share = rows / rows.sum(1, keepdim=True)
    moments = torch.stack([(x * share[..., subset, None]).transpose(1, 2) @ x for subset in range(subsets)], dim=1)
    step = 2 / torch.linalg.eigvalsh(moments)[..., -1]
    wide = step[:, None, :, None]
    less = wide * strength[:, None, None, None]
    w = x.new_zeros(replicas, x.shape[-1], subsets, classes)
    ahead, speed = w, 1.0
    done = torch.zeros(replicas, dtype=torch.bool, device=x.device)
    for _ in range(ROUNDS):
        p = (x @ ahead.flatten(2)).view(replicas, -1, subsets, classes).softmax(-1)
        errors = (p - y[:, None]) * share[..., None]
        moved = ahead - wide * (x.transpose(1, 2) @ errors.flatten(2)).view_as(ahead)
        moved[:, :-1] = moved[:, :-1].sign() * (moved[:, :-1].abs() - less).clamp(min=0)
        moved = torch.where(done[:, None, None, None], w, moved)
        faster = (1 + (1 + 4 * speed**2) ** 0.5) / 2
        ahead = moved + (speed - 1) / faster * (moved - w)
        done = done | ((moved - w).abs().flatten(1).amax(1) < STILL)
        w, speed = moved, faster
        if bool(done.all()):
            break
    head = w.mean(2).transpose(1, 2)
    return head[..., :-1], head[..., -1]
