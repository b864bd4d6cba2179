"""A whole training step as one graph: batch in, parameters moved. Forward, losses, gradients, clipping and optimiser.

The algorithm's own `update` and `after` are run once over stand-ins for all that a step may change: parameters, saved
buffers, the optimisers' tensors. What they do is recorded, operation by operation below autograd (make_fx), and the
stand-ins' ends are copied to where the values came from. Nothing is left out that an algorithm does in Python around
the plain step: several optimisers, inner steps, gradients of gradients.

A graph cannot hold a decision taken by looking at a tensor: such a step is `NotTraceable`. What is decided by the
clock becomes a condition of the trace (`symbolic_clock.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from ...replicas.hyperparameters import Hyperparameters
from ..algorithm import Clock
from ..sampler import Batch
from .state import StepState
from .symbolic_clock import Condition, NotTraceable, TracedClock

Batches = Sequence[tuple[Batch, Tensor | None]]
Run = Callable[[list[Tensor], list[Tensor], list[Tensor]], Tensor]
"""`run(live, drawn, where)`: one step, in place; the losses (K,)."""

REFUSALS = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, LookupError, NotTraceable)
"""What a step that cannot be traced or compiled raises, its own or torch's."""


@dataclass
class Slot:
    """A place of a module where a tensor lies that a step may change."""

    table: dict[str, Any]
    name: str
    tensor: Tensor

    def settle(self) -> None:
        """Where something else has been put there since, take its values over: a graph may know the tensor by its
        address."""
        now = self.table[self.name]
        if now is not self.tensor:
            with torch.no_grad():
                self.tensor.copy_(now)
            self.table[self.name] = self.tensor


def slots(training: StepState) -> list[Slot]:
    """All parameters and saved buffers of the network and the algorithm; settings and keys never change."""
    stack = training.stack
    fixed = {
        id(part)
        for hyperparameters in stack.modules()
        if isinstance(hyperparameters, Hyperparameters)
        for part in hyperparameters.modules()
    }
    found = []
    for module in (*stack.network.modules(), *stack.algorithm.modules()):
        if id(module) in fixed:
            continue
        fixed.add(id(module))
        found += [Slot(module._parameters, name, x) for name, x in module._parameters.items() if x is not None]
        saved = module._buffers.keys() - module._non_persistent_buffers_set
        buffers = ((name, module._buffers[name]) for name in sorted(saved))
        found += [Slot(module._buffers, name, x) for name, x in buffers if x is not None]
    return found


@dataclass
class Trace:
    """A recorded step. run: its graph. taken: what must hold for a step to be this one. shape: of its batches."""

    run: Run
    taken: list[Condition] = field(default_factory=list)


def batch_tensors(batches: Batches) -> list[Tensor]:
    """The tensors of batches, in a fixed order; what several of them share comes as often."""
    found: list[Tensor] = []
    for batch, share in batches:
        optional = (batch.weight, batch.group, share)
        found += [*batch.inputs, batch.target, batch.rows, *(x for x in optional if x is not None)]
        found += batch.unlabelled or ()
    return found


def shape(batches: Batches) -> tuple[Any, ...]:
    """What two steps' batches have in common that one graph can take."""
    return tuple(
        (
            *(batch.environments, len(batch.inputs), batch.weight is None, batch.group is None, share is None),
            *((tuple(x.shape), x.dtype, x.stride()) for x in batch_tensors([(batch, share)])),
        )
        for batch, share in batches
    )


def _filled(batches: Batches, tensors: Sequence[Tensor]) -> Batches:
    """Batches like these of other tensors, in the order of `flat`."""
    left = iter(tensors)

    def like(x: Tensor | None) -> Tensor | None:
        return None if x is None else next(left)

    found = []
    for batch, share in batches:
        inputs = tuple(next(left) for _ in batch.inputs)
        made = replace(batch, inputs=inputs, target=next(left), rows=next(left))
        made, part = replace(made, weight=like(batch.weight), group=like(batch.group)), like(share)
        if batch.unlabelled is not None:
            made = replace(made, unlabelled=tuple(next(left) for _ in batch.unlabelled))
        found.append((made, part))
    return found


@contextmanager
def _stood_in(places: Sequence[Slot], values: Sequence[Any]) -> Iterator[None]:
    """Other values in these places, while the context lasts."""
    try:
        for slot, value in zip(places, values, strict=True):
            slot.table[slot.name] = value
        yield
    finally:
        for slot in places:
            slot.table[slot.name] = slot.tensor


@contextmanager
def _unmarked(modules: Sequence[nn.Module]) -> Iterator[None]:
    """What modules were given in Python meanwhile (what `loss` keeps for `after`) is forgotten: it belongs to the
    trace."""
    before = [dict(vars(module)) for module in modules]
    try:
        yield
    finally:
        for module, attributes in zip(modules, before, strict=True):
            vars(module).clear()
            vars(module).update(attributes)


def mutable_tensors(training: StepState, places: Sequence[Slot]) -> list[Tensor]:
    """The tensors that a step changes, in the order in which a trace takes them."""
    found = [slot.tensor.detach() for slot in places]
    for optimiser_step in training.optimiser_steps.values():
        found += optimiser_step.optimiser.tensors().values()  # type: ignore[attr-defined]
    return [*found, training.broken]


def trace(
    training: StepState, places: Sequence[Slot], batches: Batches, now: Clock, factors: Sequence[Tensor]
) -> Trace:
    """Record the step that is about to be taken; nothing is changed. `NotTraceable`, or one of `REFUSALS`, where it
    cannot be recorded.

    factors: of each optimiser step's learning rates, () float64."""
    stack, taken = training.stack, list[Condition]()
    rng, modules = stack.rng, [*stack.modules()]
    step, total = (torch.tensor(value, device=stack.keys.device) for value in (now.step, now.total))
    names = [optimiser_step.optimiser.tensors().keys() for optimiser_step in training.optimiser_steps.values()]  # type: ignore[attr-defined]

    def moved(state: list[Tensor], drawn: list[Tensor], where: list[Tensor]) -> Tensor:
        with torch.no_grad():
            ends = [x.clone() for x in state]
        for slot, leaf in zip(places, ends, strict=False):
            leaf.requires_grad_(slot.tensor.requires_grad)
        leaf_of = {id(slot.tensor): leaf for slot, leaf in zip(places, ends, strict=False)}
        rest, optimiser_steps = iter(ends[len(places) :]), {}
        for place, (name, optimiser_step) in enumerate(training.optimiser_steps.items()):
            tensors = {key: next(rest) for key in names[place]}
            optimiser_steps[name] = optimiser_step.over(lambda p: leaf_of[id(p)], tensors, where[2 + place])
        broken, clock = next(rest), TracedClock(now, where[0], where[1], taken)
        rng.at(where[1])
        with _stood_in(places, ends[: len(places)]), _unmarked(modules), training.precision.applied():
            losses = stack.algorithm.update(
                stack.network, lambda: iter(_filled(batches, drawn)), clock, optimiser_steps
            )
            stack.algorithm.after(stack.network, clock)
            after: list[Any] = [slot.table[slot.name] for slot in places]
        with torch.no_grad():
            for optimiser_step, keys in zip(optimiser_steps.values(), names, strict=True):
                held: Mapping[str, Tensor] = optimiser_step.optimiser.tensors()  # type: ignore[attr-defined]
                if held.keys() != keys:
                    raise NotTraceable("the optimiser keeps something new in this step")
                after += held.values()
            after.append(torch.where((broken < 0) & ~torch.isfinite(losses), where[1], broken))
            for old, new in zip(state, after, strict=True):
                old.copy_(new)
        return losses.detach()

    given = mutable_tensors(training, places), batch_tensors(batches), [step, total, *factors]
    graph = make_fx(moved, tracing_mode="fake", _allow_non_fake_inputs=True)(*given)
    return Trace(graph, taken)
