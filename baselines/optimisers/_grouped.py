"""torch's own fused optimisers over stacked parameters: neighbours with the same settings are one parameter group."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..replicas.hyperparameters import Hyperparameters

State = dict[str, Any]


def group_replicas(each: Sequence[Mapping[str, Any]]) -> list[tuple[slice, dict[str, Any]]]:
    """The replicas in runs of equal settings, in their order."""
    slices, start = [], 0
    for settings, members in groupby(each, key=lambda settings: dict(settings)):
        stop = start + len(list(members))
        slices.append((slice(start, stop), settings))
        start = stop
    return slices


class GroupedOptimiser:
    """A torch optimiser with elementwise state, so that stacking replicas changes nothing."""

    state_names: ClassVar[tuple[str, ...]] = ("exp_avg", "exp_avg_sq")
    """torch's state tensors of a parameter."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        self.parameters = list(parameters)
        own = zip(rates, hyperparameters.exact("weight_decay"), self.list_options(hyperparameters), strict=True)
        self.runs = group_replicas([{"lr": lr, "weight_decay": decay, **more} for lr, decay, more in own])
        self.is_single = len(self.runs) == 1
        self.sizes = [some.stop - some.start for some, _ in self.runs]
        groups = []
        for some, settings in self.runs:
            views = self.parameters if self.is_single else [nn.Parameter(p.detach()[some]) for p in self.parameters]
            groups.append({"params": views, **settings})
        self.optimiser = self.make(groups, hyperparameters)
        self.rates = [group["lr"] for group in self.optimiser.param_groups]

    def make(self, groups: list[dict[str, Any]], hyperparameters: Hyperparameters) -> torch.optim.Optimizer:
        """torch's optimiser of parameter groups."""
        raise NotImplementedError

    def list_options(self, hyperparameters: Hyperparameters) -> list[dict[str, Any]]:
        """Of each replica, beside its rate and weight decay: Adam's."""
        named = zip(*(hyperparameters.exact(name) for name in ("beta1", "beta2", "eps")), strict=True)
        return [{"betas": (beta1, beta2), "eps": eps} for beta1, beta2, eps in named]

    def step(self, factor: float) -> None:
        """One step along the parameters' `.grad`, at `factor` of each replica's learning rate."""
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor
        if not self.is_single:
            for index, parameter in enumerate(self.parameters):
                views = [group["params"][index] for group in self.optimiser.param_groups]
                gradient = parameter.grad
                pieces = [None] * len(views) if gradient is None else torch.split(gradient, self.sizes)
                for view, piece in zip(views, pieces, strict=True):
                    view.grad = piece
        self.move()

    def move(self) -> None:
        """Take the step, once rates and gradients are set."""
        self.optimiser.step()

    def state(self) -> State:
        """The state between steps: tensors (K, ..), how many steps there were, and for parameters whose gradients began
        later how many steps they took (`steps/PLACE`)."""
        state: State = {"steps": 0}
        step_counts = [
            self.optimiser.state.get(view, {}).get("step") for view in self.optimiser.param_groups[0]["params"]
        ]
        state["steps"] = max((int(step) for step in step_counts if step is not None), default=0)
        for index, step in enumerate(step_counts):
            if step is not None and int(step) != state["steps"]:
                state[f"steps/{index}"] = int(step)
        for name in self.state_names:
            for index, parameter in enumerate(self.parameters):
                pieces = [self._of(group["params"][index], name) for group in self.optimiser.param_groups]
                if pieces[0] is not None:
                    state[f"{name}/{index}"] = torch.cat([piece for piece in pieces if piece is not None])
                assert parameter.shape[0] == self.runs[-1][0].stop
        return state

    def _of(self, view: nn.Parameter, name: str) -> Tensor | None:
        value = self.optimiser.state.get(view, {}).get(name)
        return value if isinstance(value, Tensor) else None

    def load(self, state: State) -> None:
        """Restore a state that `state` returned."""
        for group, (some, _) in zip(self.optimiser.param_groups, self.runs, strict=True):
            for index, view in enumerate(group["params"]):
                tensors = {
                    name: state[f"{name}/{index}"][some].clone()
                    for name in self.state_names
                    if f"{name}/{index}" in state
                }
                if tensors:
                    own = f"steps/{index}"
                    step = torch.tensor(float(state[own if own in state else "steps"]), device=view.device)
                    self.optimiser.state[view] = {"step": step, **tensors}
        self.loaded()

    def loaded(self) -> None:
        """Called when the state's tensors were replaced."""
