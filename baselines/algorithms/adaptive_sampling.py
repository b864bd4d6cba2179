"""Adaptive sampling: a budget of training rows is spent on groups by their estimated learning curves.

The loss of group g (an environment), on validation rows, is taken to be a power law of its training rows n_g:

    L_g(n) = b_g n^-p_g          minimise sum_g L_g(n_g)^q  such that  sum_g n_g <= budget,  n_g <= available rows

q = 1 (`aversion`) is the mean over groups; the larger q, the more the worst group counts. The objective is convex and
separable, so giving row after row to the group with the largest decrease is optimal for known curves, and can be done
without knowing the budget. The rows are collected in `rounds` of equal size: the first two with equally many of every
group; after each, a fresh network is trained on the rows collected, the curves are fitted to all losses so far by least
squares of log L on log n (p_g >= 0), and the next rows are given. The last network is the result. Rows of a group are
collected in random order. `collect` = equal and proportional are the paper's heuristics in the same rounds.

Cai et al. maximise a function of group-specific metrics under a budget, by estimated learning rates, with a cost for
each row. Of the paper the abstract was read: the curve, its fit and the exponent q are ours, and every row costs 1. The
curves ignore that rows of one group may change the loss of another.

Not compared with released code: only the abstract was read, and the curve, its fit and the objective are ours.
"""

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import derive_stream, draw_permutations, make_keys
from ..training.losses import compute_task_loss
from ..training.sampler import select_batch
from . import Batch, Data, StepState
from ._rows import ChosenRows, sample_by_weight

KIND = "domain"
CITATION = (
    "Cai, Encarnacion, Chern, Corbett-Davies, Bogen, Bergman and Goel, Adaptive sampling strategies to construct "
    "equitable training datasets, 2022 (arXiv:2202.01327)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups", "id_val")
SETTINGS: dict[str, Any] = {"budget": 0.1, "rounds": 5, "aversion": 1.0, "collect": "adaptive"}
"""budget: the share of the training rows that may be collected. rounds: of collection, with an equal share of the steps
each. aversion: q. collect: `adaptive`, `equal` (of every group) or `proportional` (to its rows)."""
SEARCH: dict[str, Any] = {"rounds": ["choice", 4, 5, 8], "aversion": ["choice", 1.0, 2.0, 4.0]}
LIMITS = {"collect": ("adaptive", "equal", "proportional")}


class Algorithm(ChosenRows):
    rank: Tensor
    sizes: Tensor
    losses: Tensor

    def set_up(self) -> None:
        """`ModelError` for a setting out of range, or groups without rows to train on or validate with."""
        super().set_up()
        about, self.rounds = self.about, self.hyperparameters["rounds"]
        data, groups = about.data, about.environments
        if not 3 <= self.rounds <= about.steps:
            raise ModelError(f"setting rounds of adaptive_sampling: use 3 or more, at most the {about.steps} steps")
        held_out = data.held_out["id_val"]
        if groups < 2 or held_out.group is None or set(range(groups)) - set(held_out.group.tolist()):
            raise ModelError("adaptive_sampling needs two groups or more, each with rows in id_val")
        assert data.group is not None
        self.available = torch.bincount(data.group, minlength=groups).tolist()
        budgets = [int(share * len(data)) for share in self.hyperparameters.exact("budget")]
        if not all(groups * self.rounds <= budget <= len(data) for budget in budgets):
            raise ModelError(
                "setting budget of adaptive_sampling: use at most 1, enough for a row of each group a round"
            )
        rank = torch.zeros(about.replicas, len(data), dtype=torch.int64, device=data.group.device)
        keys = derive_stream(make_keys(about.names, data.group.device), "adaptive_sampling/order")
        for group in range(groups):
            rows = torch.nonzero(data.group == group)[:, 0]
            rank[:, rows] = draw_permutations(derive_stream(keys, "group", group), len(rows))
        self.register_buffer("rank", rank)
        self.register_buffer("sizes", rank.new_zeros(about.replicas, self.rounds, groups))
        self.register_buffer("losses", torch.zeros(self.sizes.shape, dtype=torch.float64, device=rank.device))
        self.collect_rows(0)

    def stages(self, steps: int) -> tuple[int, ...]:
        return tuple(steps * (k + 1) // self.rounds - steps * k // self.rounds for k in range(self.rounds))

    def collect_rows(self, stage: int) -> None:
        """Give the rows of a round: set the rows of each group from then on, `sizes` (K, rounds, groups)."""
        for replica, share in enumerate(self.hyperparameters.exact("budget")):
            before = self.sizes[replica, stage - 1].tolist() if stage else [0] * len(self.available)
            budget = int(share * self.rank.shape[1]) * (stage + 1) // self.rounds
            chosen = allocate_rows(self.choose_gain(replica, stage), before, self.available, budget)
            self.sizes[replica, stage] = self.sizes.new_tensor(chosen)

    def choose_gain(self, replica: int, stage: int) -> Callable[[int, int], float]:
        """What `allocate_rows` maximises in a round."""
        if self.hyperparameters["collect"] == "proportional":
            return lambda group, n: -(n + 0.5) / self.available[group]
        if self.hyperparameters["collect"] == "equal" or stage < 2:
            return lambda group, n: -float(n)
        b, p = fit_power_laws(self.sizes[replica, :stage], self.losses[replica, :stage])
        return make_gain(b.tolist(), p.tolist(), self.hyperparameters.exact("aversion")[replica])

    def choose_rows(self, batch: Batch, clock: StepState) -> Batch:
        weight = self.weigh_rows(clock.stage)
        rows = sample_by_weight(weight, clock.draw("adaptive_sampling"), batch.rows.shape[1])
        return select_batch(self.about.data, rows)

    def weigh_rows(self, stage: int) -> Tensor:
        """The weight of each row in a round, (K, N): 0 if it is not collected."""
        data = self.about.data
        assert data.group is not None
        collected = self.rank < self.sizes[:, stage].gather(1, data.group.expand_as(self.rank))
        return torch.where(collected, data.weight.double(), 0.0)

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        held_out = data.held_out["id_val"]
        assert held_out.group is not None
        outputs = answer(*held_out.inputs)
        errors = compute_task_loss(outputs, held_out.target.expand(len(outputs), -1)).double()
        each = F.one_hot(held_out.group, len(self.available)).double()
        self.losses[:, stage - 1] = errors @ each / each.sum(0)
        self.collect_rows(stage)
        return data, True


def fit_power_laws(n: Tensor, losses: Tensor) -> tuple[Tensor, Tensor]:
    """b and p >= 0, each (groups,), of b n^-p by least squares of log losses on log n: n and losses (points, groups).
    p = 0 where n does not vary; losses below 1e-12 count as 1e-12."""
    x, y = n.double().log(), losses.clamp(min=1e-12).log()
    deviation = x - x.mean(0)
    squares = deviation.square().sum(0)
    p = (-(deviation * y).sum(0) / torch.where(squares > 0, squares, 1.0)).clamp(min=0)
    return (y.mean(0) + p * x.mean(0)).exp(), p


def make_gain(b: Sequence[float], p: Sequence[float], q: float) -> Callable[[int, int], float]:
    """The decrease of L_g^q by one row more than n >= 1."""
    return lambda group, n: b[group] ** q * (n ** (-p[group] * q) - (n + 1) ** (-p[group] * q))


def allocate_rows(
    gain: Callable[[int, int], float], before: Sequence[int], available: Sequence[int], budget: int
) -> list[int]:
    """The rows of each group when `budget` are given in all, `before` included: one after the other to the group of
    largest `gain(group, rows so far)` that has rows left; among equal ones to that with the fewest so far."""
    rows = list(before)
    waiting = [(-gain(group, n), n, group) for group, n in enumerate(rows) if n < available[group]]
    heapq.heapify(waiting)
    while waiting and sum(rows) < budget:
        _, n, group = heapq.heappop(waiting)
        rows[group] = n + 1
        if n + 1 < available[group]:
            heapq.heappush(waiting, (-gain(group, n + 1), n + 1, group))
    return rows
