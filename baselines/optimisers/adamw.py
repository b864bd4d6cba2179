"""AdamW: Adam with decoupled weight decay. Loshchilov and Hutter, ICLR 2019 (arXiv:1711.05101); Kingma and Ba, ICLR
2015 (arXiv:1412.6980)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..replicas.hyperparameters import Hyperparameters
from ._grouped import GroupedOptimiser

SETTINGS: dict[str, Any] = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8}


class Optimiser(GroupedOptimiser):
    """torch's own, fused."""

    there: Sequence[Sequence[bool]] = ()
    """Which parameters of each group had a gradient in the step before; empty before there was one."""

    def make(self, groups: list[dict[str, Any]], hyperparameters: Hyperparameters) -> torch.optim.Optimizer:
        return torch.optim.AdamW(groups, fused=True)

    def move(self) -> None:
        """Call torch's kernel with lists that are reused from step to step: gathering them anew, as torch's `step`
        does, takes several times as long as the kernel for small networks."""
        groups = self.optimiser.param_groups
        gradients = [[view.grad for view in group["params"]] for group in groups]
        there = [[gradient is not None for gradient in some] for some in gradients]
        if there != self.there:
            self.optimiser.step()
            self.there = there
            self.lists = [self._gathered(group) for group in groups]
            return
        with torch.no_grad():
            torch._foreach_add_([step for *_, steps in self.lists for step in steps], 1)
            for group, some, (views, averages, squares, steps) in zip(groups, gradients, self.lists, strict=True):
                if not views:
                    continue
                beta1, beta2 = group["betas"]
                torch._fused_adamw_(
                    views, [gradient for gradient in some if gradient is not None], averages, squares, [], steps,
                    lr=group["lr"], beta1=beta1, beta2=beta2, weight_decay=group["weight_decay"], eps=group["eps"],
                    amsgrad=False, maximize=False,
                )  # fmt: skip

    def _gathered(self, group: dict[str, Any]) -> tuple[list[Tensor], ...]:
        """A group's parameters that have a gradient, and the state of each."""
        views = [view for view in group["params"] if view.grad is not None]
        buffers = ([self.optimiser.state[view][name] for view in views] for name in (*self.state_names, "step"))
        return (views, *buffers)

    def loaded(self) -> None:
        self.there = ()
