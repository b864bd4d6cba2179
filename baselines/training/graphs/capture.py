"""Steps of a training taken as graphs, where that is possible and pays.

A step is recorded (`trace.py`), compiled by torch.compile where the steps that are left repay it, and on a GPU
captured as a CUDA graph, so that it is one launch. The setting `compile`:

    never     plain steps: the default on every device, until `make bench-gpu` has passed on a GPU
    auto      on a GPU by measured times: plain steps, captured ones, compiled and captured ones. Never on a CPU
    always    compiled, on any device

Before a graph serves, it takes a step beside the plain path from the same state, and must come to the same: what cannot
be traced, compiled or trusted goes on in plain steps, and a line says why.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ....core.errors import ModelError, first_line
from ....core.progress import say
from ...ranges import out_of_range
from ..algorithm import Clock
from .state import StepState
from .symbolic_clock import NotTraceable, holds
from .trace import REFUSALS, Batches, Run, Trace, batch_tensors, mutable_tensors, shape, slots, trace

WARM, TIMED = 2, 3
"""Plain steps before the first graph that are not timed, and that are; a graph's likewise."""

TRACING_SECONDS, COMPILING_SECONDS, SAVED = 3.0, 60.0, 1 / 3
"""About what recording a step costs, and compiling one; and the share of a recorded step that compiling is expected to
save. Graphs are made where the steps that are left save more than that; which one serves is measured."""

MOST = 8
"""Graphs that a replica stack may have: for other shapes of batches, and for other answers of the clock."""

NEAR = {torch.float64: 1e-8, torch.float32: 0.05, torch.bfloat16: 0.25}
"""How far from a plain step's a graph's may lead, as a share of the plain step's length, by the precision of the
products. It tells another step from rounding: where a gradient is nearly 0, optimisers divide it by its own size."""


def whole(training: StepState) -> Whole | None:
    """What takes a training's steps as graphs; None where the setting, or the device, asks for plain ones."""
    choice, keys = training.stack.hyperparameters["compile"], training.stack.keys
    if problem := out_of_range("compile", choice):
        raise ModelError(f"setting compile = {choice!r}: {problem}")
    if choice == "never" or training.together.size > 1 or (choice == "auto" and not keys.is_cuda):
        return None
    return Whole(training, choice == "always")


OPTIONS: dict[str, Any] = {"constant_and_index_propagation": False}
"""Of torch.compile: the hashes from which noise is drawn wrap around, and its symbolic indices do not."""


class Whole:
    """The graphs of a training, until replicas leave it or a stage ends."""

    def __init__(self, training: StepState, always: bool) -> None:
        self.training, self.always = training, always
        self.on_gpu: bool = training.stack.keys.is_cuda
        self.slots = slots(training)
        self.where = [torch.zeros((), dtype=torch.int64, device=training.stack.keys.device) for _ in range(2)]
        self.graphs: list[tuple[Any, Trace]] = []
        self.optimisers: list[Any] = []
        self.state: list[Tensor] = []
        """All that a step changes, where it lies."""
        self.seconds: list[float] = []
        """Of plain steps."""
        self.plain = True
        """Whether the step before was a plain one: a graph is made after one, so that all it leaves is there."""

    def step(self, now: Clock) -> Tensor | None:
        """Take a step as a graph: the losses (K,); None where it is to be a plain one."""
        if len(self.seconds) < WARM + TIMED if self.on_gpu else not self.seconds:
            return self._warm(now)
        if self.optimisers and not self._same_optimisers():
            self._forget()
        batches = list(self.training.batches(now.total))
        key = shape(batches)
        for known, graph in self.graphs:
            if known == key and holds(graph.taken, now):
                self.plain = False
                return self._run(graph.run, batch_tensors(batches), now)
        if not self.plain or len(self.graphs) == MOST:
            self.plain = True
            return None
        return self._begin(key, batches, now)

    def _warm(self, now: Clock) -> Tensor:
        """A plain step, timed."""
        start = self._time()
        losses = self.training.moved(now)
        self.seconds.append(self._time() - start)
        return losses

    def _time(self) -> float:
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def _same_batches(self) -> bool:
        """Whether every step has the same batch, in the same memory: a full one, as it is."""
        sampler = self.training.sampler
        return not sampler.size and not sampler.environments and self.training.augmentation is None

    def _same_optimisers(self) -> bool:
        now = [optimiser_step.optimiser for optimiser_step in self.training.optimiser_steps.values()]
        return all(a is b for a, b in zip(now, self.optimisers, strict=True))

    def _forget(self) -> None:
        """An algorithm has begun its optimisers anew: graphs knew the old ones' tensors."""
        self.graphs, self.optimisers, self.state, self.plain = [], [], [], True

    def _begin(self, key: Any, batches: Batches, now: Clock) -> Tensor | None:
        """Make a graph of this step, and take it."""
        training = self.training
        least, left = min(self.seconds), training.steps - now.total
        if not self.always and left * least < TRACING_SECONDS:
            self._give_up("")
            return None
        try:
            if not self.optimisers:
                for optimiser_step in training.optimiser_steps.values():
                    optimiser_step.write()
                self.optimisers = [optimiser_step.optimiser for optimiser_step in training.optimiser_steps.values()]
                device = training.stack.keys.device
                self.where[2:] = [torch.ones((), dtype=torch.float64, device=device) for _ in self.optimisers]
                self.state = mutable_tensors(training, self.slots)
            self._settle()
            made = trace(training, self.slots, batches, now, self.where[2:])
        except REFUSALS as error:
            self._give_up(_said(error))
            return None
        before = [x.clone() for x in self.state]
        try:
            return self._chosen(key, made, batches, now, before, least, left)
        except REFUSALS as error:
            self._restore(before)
            self._give_up(_said(error))
            return None

    def _chosen(
        self, key: Any, made: Trace, batches: Batches, now: Clock, before: list[Tensor], least: float, left: int
    ) -> Tensor | None:
        """The quickest of the paths there are takes this step, and all that are like it."""
        self.training.moved(now)
        self._settle()
        plainly = [x.clone() for x in self.state]
        self._restore(before)
        drawn = batch_tensors(batches)
        if self.on_gpu:
            # A captured graph reads its inputs where they lay: a batch that is drawn anew is copied there.
            drawn = drawn if self._same_batches() else [x.clone() for x in drawn]

        def tried(run: Run) -> tuple[float, Run]:
            self._check(run, drawn, now, before, plainly)
            run = Captured(run, self.state, drawn, self.where) if self.on_gpu else run
            self._restore(before)
            seconds = self._timed(run, drawn, now, before) if self.on_gpu else 0.0
            return seconds, run

        def compiled() -> tuple[float, Run]:
            return tried(torch.compile(made.run, dynamic=False, options=OPTIONS))

        if self.always:
            found = compiled()
        else:
            found = tried(made.run)
            if left * found[0] * SAVED > COMPILING_SECONDS:
                try:
                    found = min(found, compiled(), key=lambda pair: pair[0])
                except REFUSALS as error:
                    self._restore(before)
                    say(f"steps are recorded, not compiled: {_said(error)}")
            if found[0] > least:
                self._give_up(f"a plain step takes {1e3 * least:.2f} ms, a recorded one {1e3 * found[0]:.2f} ms")
                return None
        made.run = found[1]
        self.graphs.append((key, made))
        self.plain = False
        return self._run(made.run, batch_tensors(batches), now)

    def _run(self, run: Run, drawn: list[Tensor], now: Clock) -> Tensor:
        """One step along a graph."""
        self._settle()
        self.where[0].fill_(now.step)
        self.where[1].fill_(now.total)
        for factor, optimiser_step in zip(self.where[2:], self.training.optimiser_steps.values(), strict=True):
            factor.fill_(optimiser_step.factor)
        with torch.no_grad():  # asking for `broken` notes what plain steps have seen before a graph goes on
            return run([*self.state[:-1], self.training.broken], drawn, self.where)

    def _check(
        self, run: Run, drawn: list[Tensor], now: Clock, before: list[Tensor], plainly: Sequence[Tensor]
    ) -> None:
        """`NotTraceable` where a graph leads elsewhere than a plain step from the same state."""
        self._run(run, drawn, now)
        near = NEAR[self.training.precision.dtype]
        gone, apart = (self._apart(plainly, others) for others in (before, self.state))
        if not apart <= near**2 * gone:
            raise NotTraceable(
                f"its graph leads {(apart / max(gone, 1e-300)) ** 0.5:.1g} step lengths from a plain step"
            )
        self._restore(before)

    def _apart(self, some: Sequence[Tensor], others: Sequence[Tensor]) -> float:
        """The squared distance between two states of network and algorithm; what is not finite does not count."""
        pairs = zip(some[: len(self.slots)], others[: len(self.slots)], strict=True)
        gaps = [(a.double() - b.double()).nan_to_num(0, 0, 0).square().sum() for a, b in pairs if a.is_floating_point()]
        return float(torch.stack(gaps).sum())

    def _timed(self, run: Run, drawn: list[Tensor], now: Clock, before: list[Tensor]) -> float:
        times = []
        for _ in range(WARM + TIMED):
            start = self._time()
            self._run(run, drawn, now)
            times.append(self._time() - start)
        self._restore(before)
        return min(times[WARM:])

    def _settle(self) -> None:
        for slot in self.slots:
            slot.settle()

    def _restore(self, before: list[Tensor]) -> None:
        """Back to an earlier state."""
        self._settle()
        with torch.no_grad():
            for mine, value in zip(self.state, before, strict=True):
                mine.copy_(value)

    def _give_up(self, why: str) -> None:
        """Go on in plain steps."""
        self.training.whole = None
        self.graphs = []
        for optimiser_step in self.training.optimiser_steps.values():
            optimiser_step.unwrite()
        if why:
            say(f"steps are not compiled: {why}")


class Captured:
    """A run as a CUDA graph: the same kernels on the same memory, in one launch."""

    def __init__(self, run: Run, state: list[Tensor], drawn: list[Tensor], where: list[Tensor]) -> None:
        self.drawn = drawn
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad():
            with torch.cuda.stream(stream):
                for _ in range(WARM):
                    run(state, drawn, where)
            torch.cuda.current_stream().wait_stream(stream)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.losses = run(state, drawn, where)

    def __call__(self, state: list[Tensor], drawn: list[Tensor], where: list[Tensor]) -> Tensor:
        for mine, given in zip(self.drawn, drawn, strict=True):
            if mine is not given:
                mine.copy_(given)
        self.graph.replay()
        return self.losses


def _said(error: Exception) -> str:
    """An error's first line, short enough to be read."""
    first = first_line(error)
    return first if len(first) <= 160 else f"{first[:157]}..."
