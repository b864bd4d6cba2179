"""A recurrent network with a differentiable stack: push, pop or no-op.

Joulin and Mikolov, NeurIPS 2015 (arXiv:1503.01007), with vectors on the stack as Delétang et al., ICLR 2023
(arXiv:2207.02098), where it learns deterministic context-free tasks that an LSTM does not. The stack grows with every
step, so it is never full.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..encoding.decoding import State
from ..encoding.encoding import Sizes
from ._machine import Machine

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 256, "cell": 8}
"""width: units of the recurrent network; cell: numbers in each cell of the stack."""


def push_and_pop(stack: Tensor, actions: Tensor, value: Tensor) -> Tensor:
    """A stack (K, n, depth, cell), its top first, after a mixture, with weights (K, n, 3), of no action, pushing a
    value (K, n, cell) and popping: (K, n, depth + 1, cell). Below the bottom are zeros."""
    depth = stack.shape[2] + 1
    around = F.pad(torch.cat([value[:, :, None], stack], dim=2), (0, 0, 0, 2))
    pushed, left, popped = (around[:, :, first : first + depth] for first in range(3))
    stay, push, pop = actions[..., None, None].unbind(2)
    return torch.addcmul(torch.addcmul(stay * left, push, pushed), pop, popped)


class Network(Machine):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__(sizes, settings["width"], settings["cell"], actions=3)

    def _empty(self, source: Tensor) -> State:
        return {"memory": self.head.weight.new_zeros(*source.shape[:2], 1, self.cell)}

    def _changed(self, state: State, actions: Tensor, value: Tensor) -> Tensor:
        return push_and_pop(state["memory"], actions, value)
