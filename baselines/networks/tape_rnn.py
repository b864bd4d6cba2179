"""A recurrent network with a differentiable tape: write, then stay, or move by one cell or by the input's length.

Delétang et al., ICLR 2023 (arXiv:2207.02098), whose approximation of a Turing machine it is; here the written value is
linear in the hidden state. Their tape is a circle of a fixed number of cells. Here it never has less than twice the
input's length and one more, so that an input longer than those of training still fits.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..encoding.decoding import State
from ..encoding.encoding import PAD, Sizes
from ._machine import Machine

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 256, "cell": 8, "cells": 40, "jumps": True}
"""width: units of the recurrent network; cell: numbers in each cell of the tape; cells: how many the tape has at least.
jumps: whether the head can move by the input's length, too."""


def compute_moves(lengths: Tensor, cells: int, room: int, jumps: bool) -> Tensor:
    """The cell at each position, (K, n, moves, room), when the head moves right or left by one, and with `jumps` right
    or left by lengths (K, n). Positions are counted from the head on a circle of max(cells, 2 length + 1); the other
    positions of `room` do not change."""
    around = (2 * lengths + 1).clamp(min=cells)[:, :, None, None]
    unit = torch.ones_like(lengths)
    steps = torch.stack([unit, -unit] + ([lengths, -lengths] if jumps else []), dim=-1)[..., None]
    position = torch.arange(room, device=lengths.device)
    return torch.where(position < around, (position + steps) % around, position)


def write_and_move(tape: Tensor, moves: Tensor, actions: Tensor, value: Tensor) -> Tensor:
    """A tape (K, n, room, cell) counted from the head, after a value (K, n, cell) is written under the head and then a
    mixture, with weights (K, n, 1 + moves), of staying and of each of `moves` is applied."""
    tape = torch.cat([value[:, :, None], tape[:, :, 1:]], dim=2)
    order = moves.flatten(2)[..., None].expand(-1, -1, -1, tape.shape[-1])
    choices = torch.cat([tape, tape.gather(2, order)], dim=2).view(*actions.shape, tape.shape[2] * tape.shape[3])
    mixed: Tensor = actions[:, :, None] @ choices
    return mixed.view_as(tape)


class Network(Machine):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__(sizes, settings["width"], settings["cell"], actions=5 if settings["jumps"] else 3)
        self.cells, self.jumps = settings["cells"], settings["jumps"]

    def _empty(self, source: Tensor) -> State:
        room = max(self.cells, 2 * source.shape[-1] + 1)
        return {
            "memory": self.head.weight.new_zeros(*source.shape[:2], room, self.cell),
            "moves": compute_moves((source != PAD).sum(dim=-1), self.cells, room, self.jumps),
        }

    def _changed(self, state: State, actions: Tensor, value: Tensor) -> Tensor:
        return write_and_move(state["memory"], state["moves"], actions, value)
