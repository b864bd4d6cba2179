"""Train a replica stack: one loop for all its replicas, each step a pure function of the current state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ...core.clock import Stopwatch
from ...core.errors import ModelError
from ...core.world import SINGLE_PROCESS, World
from .algorithm import StepState
from .augmentation import Augmentation
from .distributed import SharedOptimiserStep, derive_noise_keys, refuse_unshared, share_batches
from .losses import average_over_batch, compute_task_loss
from .optimiser_step import OptimiserStep
from .replica_stack import ReplicaStack
from .sampler import Batch, Data, Sampler
from .step_computation import check_chunk, choose_precision, compute_in, split_into_chunks

SETTINGS: dict[str, Any] = {
    "batch_size": 128,
    "lr": 1e-3,
    "weight_decay": 0.0,
    "clip": 0.0,
    "sharpness": 0.0,
    "optimiser": "adamw",
    "schedule": "constant",
    "warmup_percent": 0,
    "pool": 1,
    "chunk": 0,
    "candidates": 1,
    "check_every": 0,
    "patience": 0,
    "precision": "auto",
    "feed": "auto",
    "each_environment": False,
}
"""batch_size: 0 for full batches; per environment, if the algorithm draws by environment. clip: the largest gradient
norm, 0 for none. sharpness: rho of sharpness-aware steps, 0 for plain ones. optimiser and schedule: files of
`optimisers/` and `schedules/`. warmup_percent: of all steps, in which the rate rises to lr. pool: batches whose rows
are sorted by length together, so that a batch has rows of similar length. chunk: the most rows of a batch that are
computed at once, 0 for all; their gradients are summed, and a chunk that fits a cache is faster. candidates: the number
of checkpoints, evenly spaced, among which the scorer may choose. check_every, patience: if both are set, a replica is
evaluated on validation rows every `check_every` steps, stops after `patience` evaluations without improvement, and
keeps its best state. precision: of a step's products. feed: where images are stored (`feed.py`). each_environment:
whether a batch has batch_size rows of each environment under any algorithm, if there are several. `step_computation.py`
explains chunk and precision."""

FINITE_CHECK_EVERY = 50
"""Steps between two checks that losses are finite: each check waits for the device."""


@dataclass
class StackOutcome:
    """The results of a replica stack. By each replica's number: its last loss, its steps, or why it failed."""

    ended: list[ReplicaStack] = field(default_factory=list)
    candidates: list[tuple[str, ReplicaStack]] = field(default_factory=list)
    losses: dict[int, float] = field(default_factory=dict)
    steps: dict[int, int] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)


class Training:
    """The state of training between two steps, and the step to the next."""

    def __init__(self, stack: ReplicaStack, data: Data, steps: int, world: World = SINGLE_PROCESS) -> None:
        """world: the processes that share the rows of each step; by default this one alone."""
        self.world = world
        if world.size > 1:
            refuse_unshared(stack.algorithm, data)
        self.stack, self.initial_data, self.data, self.steps = stack, data, data, steps
        self._watch, self.seconds_before = Stopwatch(), 0.0
        self.total = 0
        self.stage, self.in_stage = 0, 0
        self.finished = False
        self.outcome = StackOutcome()
        check_chunk(stack.algorithm)
        self.stages = stack.algorithm.stages(steps)
        assert sum(self.stages) == steps
        self.rebuild(data)

    def rebuild(self, data: Data) -> None:
        """Make everything that depends on the current replicas and their data: again when some have been removed, or a
        stage begins."""
        self.data = data
        stack = self.stack
        stack.ready()
        stack.rng.keys = derive_noise_keys(stack.keys, self.world)
        stack.network.train()
        equal = stack.algorithm.by_environment or stack.hyperparameters["each_environment"]
        self.sampler = Sampler(self.data, stack.keys, stack.hyperparameters, equal)
        self.optimiser_steps = stack.algorithm.optimiser_steps(stack.network, self._optimiser_step)
        self.precision = choose_precision(stack)
        self.augmentation = Augmentation(stack)
        self._broken = torch.full((len(stack),), -1, device=stack.keys.device)
        self._seen: list[tuple[int, Tensor]] = []
        self.losses = torch.full((len(stack),), math.nan, device=stack.keys.device)
        every, patience = stack.hyperparameters["check_every"], stack.hyperparameters["patience"]
        self.validation: Validation | None = None
        # The networks of earlier stages are not the algorithm's result: only the last stage may stop early.
        last = self.stage == len(self.stages) - 1
        if every and patience and last and "id_val" in self.data.held_out:
            self.validation = Validation(self.data.held_out["id_val"], len(stack), patience)

    def _optimiser_step(self, parameters: list[Any], rates: str = "lr") -> OptimiserStep:
        kind = SharedOptimiserStep if self.world.size > 1 else OptimiserStep
        return kind(parameters, self.stack.hyperparameters.exact(rates), self.stack.hyperparameters)

    @property
    def seconds(self) -> float:
        """Seconds of wall clock since it was made, plus those before the checkpoint that it was resumed from."""
        return self.seconds_before + self._watch.seconds()

    @property
    def done(self) -> bool:
        return self.total >= self.steps or len(self.stack) == 0

    def step(self) -> None:
        """Make one step of every replica: update network and algorithm, and `losses`, (K,)."""
        stack, settings, length = self.stack, self.stack.hyperparameters, self.stages[self.stage]
        clock = StepState(self.in_stage, length, self.stage, self.total, stack.keys)
        for optimiser_step in self.optimiser_steps.values():
            optimiser_step.at(self.in_stage, length)
        stack.rng.at(clock.total)
        with compute_in(self.precision, stack.keys.device.type):
            self.losses = stack.algorithm.update(
                stack.network, lambda: self.batches(clock.total), clock, self.optimiser_steps
            )
        if self.losses.shape != stack.keys.shape:
            raise ModelError(f"a loss of shape {tuple(self.losses.shape)}: give one of each replica, ({len(stack)},)")
        self._seen.append((clock.total, self.losses))
        stack.algorithm.after(stack.network, clock)
        self.total += 1
        self.in_stage += 1
        checks = self.validation is not None and self.total % settings["check_every"] == 0
        if checks or self.total % FINITE_CHECK_EVERY == 0 or self.in_stage == length or self.done:
            self._drop_broken()
        if checks and len(self.stack):
            self._check()
        if self.in_stage == length and not self.done:
            self._next_stage()

    @property
    def broken(self) -> Tensor:
        """The step at which each replica's loss was first not finite, (K,) int64; -1 if it always was finite."""
        if self._seen:
            steps, losses = zip(*self._seen, strict=True)
            finite = torch.isfinite(torch.stack(losses))
            first = torch.tensor(steps, device=finite.device)[finite.long().argmin(0)]
            self._broken.copy_(torch.where((self._broken < 0) & ~finite.all(0), first, self._broken))
            self._seen = []
        return self._broken

    @broken.setter
    def broken(self, value: Tensor) -> None:
        self._seen = []
        self._broken.copy_(value)

    def batches(self, step: int) -> Iterator[tuple[Batch, Tensor | None]]:
        """The batch of a step, augmented, or the chunks of a full one with their shares."""
        batches = self.augmentation.of(self.sampler.batches(step), step)
        if self.world.size > 1:
            batches = share_batches(batches, self.world)
        return split_into_chunks(batches, self.stack.hyperparameters["chunk"])

    def _next_stage(self) -> None:
        self.stage, self.in_stage = self.stage + 1, 0
        stack = self.stack
        data, anew = stack.algorithm.next_stage(self.stage, stack.network, self.data, stack.answer)
        if anew:
            stack.network = stack.fresh(self.stage)
        self.rebuild(data)

    def _drop_broken(self) -> None:
        """Remove replicas whose loss is not finite; the others continue."""
        self.outcome.losses |= dict(zip(self.stack.number.tolist(), self.losses.tolist(), strict=True))
        broken = self.broken.tolist()
        if all(at < 0 for at in broken):
            return
        rates = self.stack.hyperparameters.exact("lr")
        for index, at in enumerate(broken):
            if at >= 0:
                self.outcome.steps[int(self.stack.number[index])] = at + 1
                self.outcome.failed[int(self.stack.number[index])] = (
                    f"the loss is not finite at step {at + 1} of {self.steps}: "
                    f"lower the setting lr (now {rates[index]:g}) or set clip"
                )
        self._keep([index for index, at in enumerate(broken) if at < 0])

    def _check(self) -> None:
        """Early stopping: remove replicas that have waited long enough, each in its best state."""
        assert self.validation is not None
        stopped = self.validation.evaluate(self.stack)
        if not stopped:
            return
        assert self.validation.best is not None
        self._end(self.validation.best.only(stopped), self.data.picked(torch.tensor(stopped)))
        self._keep([index for index in range(len(self.stack)) if index not in set(stopped)])

    def _keep(self, places: list[int]) -> None:
        """Continue with some of the replicas."""
        states = {name: optimiser_step.optimiser.state() for name, optimiser_step in self.optimiser_steps.items()}
        validation, losses = self.validation, self.losses
        which = torch.tensor(places, dtype=torch.int64, device=self.stack.keys.device)
        self.stack = self.stack.only(places)
        if not places:
            return
        self.rebuild(self.data.picked(which))
        self.losses = losses[which]
        for name, state in states.items():
            self.optimiser_steps[name].optimiser.load(
                {key: value[which] if isinstance(value, Tensor) else value for key, value in state.items()}
            )
        if validation is not None:
            self.validation = validation.picked(places)

    def _end(self, stack: ReplicaStack, data: Data) -> None:
        """Finish the training of these replicas."""
        stack.network.eval()
        stack.rng.silent = True
        stack.algorithm.finish(stack.network, data, stack.answer)
        self.outcome.ended.append(stack)
        self.outcome.steps |= dict.fromkeys(stack.number.tolist(), self.total)

    def run(self, watch: Callable[[Training], None] | None = None) -> StackOutcome:
        """Train to the end. `watch` is called after every step, and once when everything is finished."""
        marks = self._checkpoint_steps()
        while not self.done:
            self.step()
            if self.total in marks and len(self.stack):
                self._keep_candidate()
            if watch is not None and not self.done:
                watch(self)
        if not self.finished:
            if len(self.stack):
                self._end((self.validation and self.validation.best) or self.stack, self.data)
            self.finished = True
            if watch is not None:
                watch(self)
        return self.outcome

    def _keep_candidate(self) -> None:
        """Add a checkpoint for the scorer: the predictor if training ended here."""
        candidate = self.stack.only(range(len(self.stack)))
        candidate.network.eval()
        candidate.algorithm.finish(candidate.network, self.data, candidate.answer)
        self.outcome.candidates.append((f"step-{self.total}", candidate))

    def _checkpoint_steps(self) -> set[int]:
        """The steps after which a candidate is saved, without the last one."""
        count = self.stack.hyperparameters["candidates"]
        return {round(self.steps * number / count) for number in range(1, count)} - {0, self.steps}


class Validation:
    """Early stopping: each replica's best loss on validation rows, the evaluations since, and its state then."""

    def __init__(self, data: Data, replicas: int, patience: int) -> None:
        self.data, self.patience = data, patience
        self.least = torch.full((replicas,), math.inf, dtype=torch.float64, device=data.lengths.device)
        self.waited = torch.zeros(replicas, dtype=torch.int64, device=data.lengths.device)
        self.best: ReplicaStack | None = None
        """The replicas, each in its best state; None before the first evaluation."""

    def loss(self, stack: ReplicaStack) -> Tensor:
        """The mean loss (`compute_task_loss`) on the validation rows, (K,)."""
        logits = stack.answer(*self.data.inputs)
        target = self.data.target.expand(len(stack), *self.data.target.shape[1:])
        rows = torch.arange(len(self.data), device=target.device).expand(len(stack), -1)
        return average_over_batch(compute_task_loss(logits, target), Batch((), target, rows))

    @torch.no_grad()
    def evaluate(self, stack: ReplicaStack) -> list[int]:
        """Evaluate; return the indices of the replicas that have had `patience` evaluations without improvement."""
        loss = self.loss(stack).double()
        better = loss < self.least
        self.least, self.waited = torch.where(better, loss, self.least), torch.where(better, 0, self.waited + 1)
        if self.best is None:
            self.best = stack.only(range(len(stack)))
        else:
            for best, current in zip(self.best.state_dict().values(), stack.state_dict().values(), strict=True):
                best[better] = current[better]
        return (self.waited >= self.patience).nonzero()[:, 0].tolist()

    def picked(self, places: list[int]) -> Validation:
        """The same for some of the replicas."""
        subset = Validation(self.data, len(places), self.patience)
        subset.least, subset.waited = self.least[places], self.waited[places]
        subset.best = self.best and self.best.only(places)
        return subset
