"""SWAD: the mean of the weights over the part of training with a low validation loss.

The steps between two evaluations on the validation rows are a segment, whose weights are averaged densely, one set a
step. With losses E_i at the evaluations (Cha et al., algorithm 1):

    start   the first i at which E_i is the least of E_i .. E_(i + converge - 1);  level = (1 + ratio) x their mean
    end     the last evaluation with E_i <= level, before `tolerance` of them in a row above it or the end of training

and the prediction is that of the mean over the segments from start to end. If no start was found it is the mean over
the last segment, as in the released code; the statistics of batch normalisation are recomputed (`swa`).

The released code differs from the algorithm in two ways that are not followed. Its mean is begun as a copy that the
next segment overwrites, so that the first segment is lost. And with `tolerance` above `converge`, its defaults, it
goes back from the start through earlier segments as long as their losses are below the level, and averages the first
segments of training several times where the start is among the first `tolerance`. Start, level and end are the same.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from . import Build, Data, EmpiricalRisk, StepState
from ._norms import recompute_running_moments
from ._plain import compute_validation_risk
from ._weights import RunningMean

KIND = "domain"
CITATION = "Cha et al., SWAD: domain generalization by seeking flat minima, NeurIPS 2021 (arXiv:2102.08604)"
TASKS = ("classification", "regression")
TOUCHES = ("train", "id_val")
SETTINGS: dict[str, Any] = {"looks": 50, "converge": 3, "tolerance": 6, "ratio": 0.3}
"""looks: evaluations on the validation rows, evenly spaced over training (the paper's 5,000 steps with one in 100).
converge, tolerance: N_s and N_e, in evaluations. ratio: r - 1 (the released code's settings for all data sets but VLCS,
0.2)."""
SEARCH: dict[str, Any] = {"ratio": ["choice", 0.2, 0.3]}
LIMITS = {"looks": "at least 1", "converge": "at least 1"}


class LossValley(nn.Module):
    """Where the validation losses of each replica are low, and the mean of the segments there."""

    losses: Tensor
    level: Tensor
    looked: Tensor
    above: Tensor
    begun: Tensor
    start: Tensor
    end: Tensor

    def __init__(self, parameters: list[Tensor], converge: int, tolerance: int, like: Tensor) -> None:
        """like: (K,), a tensor of the losses' type and place."""
        super().__init__()
        self.tolerance = tolerance
        self.window = nn.ModuleList(RunningMean(parameters) for _ in range(converge))
        self.mean, self.pending = RunningMean(parameters), RunningMean(parameters)
        self.register_buffer("losses", like.new_full((len(like), converge), torch.inf))
        self.register_buffer("level", torch.zeros_like(like))
        self.register_buffer("begun", torch.zeros_like(like, dtype=torch.bool))
        for name in ("looked", "above", "start", "end"):
            self.register_buffer(name, torch.zeros_like(like, dtype=torch.int64))

    @property
    def segments(self) -> list[RunningMean]:
        """The last losses, as many as are needed to find a start."""
        return [segment for segment in self.window if isinstance(segment, RunningMean)]

    @torch.no_grad()
    def look(self, segment: list[Tensor], loss: Tensor, ratio: Tensor) -> None:
        """Update with the mean weights of a segment and the loss (K,) at its end."""
        going_on = self.begun.clone()
        segments = self.segments
        for slot, later in zip(segments, [*(successor.values for successor in segments[1:]), segment], strict=True):
            slot.take(later)
        self.losses.copy_(torch.cat([self.losses[:, 1:], loss[:, None]], dim=1))
        self.looked += 1
        converge = len(segments)
        starts = ~self.begun & (self.looked >= converge) & (self.losses[:, 0] <= self.losses.amin(1))
        self.level.copy_(torch.where(starts, (1 + ratio) * self.losses.mean(1), self.level))
        self.start.copy_(torch.where(starts, self.looked - converge + 1, self.start))
        self.begun |= starts
        for position, slot in enumerate(segments):
            self._pass(slot.values, self.losses[:, position], starts, self.looked - converge + 1 + position)
        self._pass(segment, loss, going_on, self.looked)

    def _pass(self, segment: list[Tensor], loss: Tensor, which: Tensor, number: Tensor) -> None:
        """A segment after the start: it counts once a loss at or after it is below the level."""
        which = which & (self.above < self.tolerance)
        self.pending.merge(segment, which.long())
        low = which & (loss <= self.level)
        self.mean.merge(self.pending.values, torch.where(low, self.pending.updates, 0))
        self.pending.forget(low)
        self.above.copy_(torch.where(low, 0, self.above + which))
        self.end.copy_(torch.where(low, number, self.end))


class Algorithm(EmpiricalRisk):
    def set_up(self) -> None:
        self.validation_rows = self.about.data.held_out["id_val"]
        tolerance, converge = self.hyperparameters["tolerance"], self.hyperparameters["converge"]
        if tolerance < converge:
            raise ModelError(f"swad: setting tolerance = {tolerance}: use {converge} or more")
        self.every = max(1, self.about.steps // self.hyperparameters["looks"])

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        parameters = list(network.parameters())
        rates = self.hyperparameters["lr"]
        self.segment = RunningMean(parameters).to(rates)
        shape = self.hyperparameters["converge"], self.hyperparameters["tolerance"]
        self.valley = LossValley(parameters, *shape, rates).to(rates)
        return network

    def after(self, network: Any, clock: StepState) -> None:
        self.segment.average(list(network.parameters()))
        if (clock.total + 1) % self.every == 0:
            loss = compute_validation_risk(network, self.validation_rows, len(clock.keys), self.rng)
            self.valley.look(self.segment.values, loss.to(self.valley.level), self.hyperparameters["ratio"])
            self.segment.forget(torch.ones_like(self.segment.updates, dtype=torch.bool))

    def finish(self, network: Any, data: Data, answer: Callable[..., Tensor]) -> None:
        parameters = list(network.parameters())
        for average in (
            self.segment,
            self.valley.segments[-1],
            self.valley.mean,
        ):  # what is put last, where there is any, holds
            average.put(parameters)
        recompute_running_moments(network, data)
