"""Recurrent layers over sequences of unequal lengths: LSTM, GRU and Elman's network.

Like torch.nn's with packed sequences: a row's result does not depend on the padding beside it, in either direction.
To be read backwards a row is reversed within its own length, so that all replicas in both directions are one recurrence
and padding always comes last, where it changes nothing.
"""

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from .dropout import Dropout
from .recurrence import elman, gru, lstm

States = tuple[Tensor, ...]
"""The layers' states, each (K, n, layers, directions * width): h and c of an LSTM, h alone of the others."""


class Cell(NamedTuple):
    """A recurrence: its weights' and biases' sizes in multiples of the width, and its number of states."""

    run: Callable[..., States]
    weights: int
    biases: int
    states: int


class Layer(nn.Module):
    """One layer in each of its directions, 1 or 2. into: (K, directions, inputs, gates), again:
    (K, directions, width, gates), bias: (K, directions, ..), uniform within 1 / sqrt(width) at first, as torch.nn's."""

    def __init__(self, cell: Cell, inputs: int, width: int, directions: int) -> None:
        super().__init__()
        self.cell, self.width, self.directions = cell, width, directions
        reach = 1 / math.sqrt(width)
        self.into = nn.Parameter(torch.empty(1, directions, inputs, cell.weights * width).uniform_(-reach, reach))
        self.again = nn.Parameter(torch.empty(1, directions, width, cell.weights * width).uniform_(-reach, reach))
        self.bias = nn.Parameter(torch.empty(1, directions, cell.biases * width).uniform_(-reach, reach))

    def forward(self, x: Tensor, lengths: Tensor | None, states: States | None) -> tuple[Tensor, States]:
        """As `Recurrent.forward`, states (K, n, directions * width)."""
        x = x.transpose(1, 2)
        ways = torch.stack([x, _reverse_rows(x, lengths)], dim=1) if self.directions == 2 else x[:, None]
        weights = [weight.flatten(0, 1) for weight in (self.into, self.again, self.bias)]
        after = self.cell.run(ways.flatten(0, 1).contiguous(), *weights, *self._before(x, states))
        hidden = after[0].view(len(x), self.directions, *after[0].shape[1:])
        if self.directions == 2:
            out = torch.cat([hidden[:, 0], _reverse_rows(hidden[:, 1], lengths)], dim=-1)
        else:
            out = hidden[:, 0]
        if lengths is not None:
            beyond = torch.arange(x.shape[1], device=x.device)[:, None] >= lengths[:, None, :]
            out = out.masked_fill(beyond[..., None], 0.0)
        return out.transpose(1, 2), tuple(self._last(part, lengths) for part in after)

    def _before(self, x: Tensor, states: States | None) -> States:
        """The first states in the recurrences' layout, (K * directions, n, width); x: (K, T, n, inputs)."""
        if states is None:
            zeros = x.new_zeros(len(x) * self.directions, x.shape[2], self.width)
            return (zeros,) * self.cell.states
        apart = (part.reshape(*part.shape[:2], self.directions, self.width).transpose(1, 2) for part in states)
        return tuple(part.flatten(0, 1).contiguous() for part in apart)

    def _last(self, part: Tensor, lengths: Tensor | None) -> Tensor:
        """The state of (K * directions, T, n, width) after each row's last step, (K, n, directions * width)."""
        if lengths is None:
            last = part[:, -1]
        else:
            index = (lengths - 1).repeat_interleave(self.directions, dim=0)[:, None, :, None]
            last = part.gather(1, index.expand(-1, 1, -1, self.width))[:, 0]
        return last.reshape(len(last) // self.directions, self.directions, *last.shape[1:]).transpose(1, 2).flatten(2)


class Recurrent(nn.Module):
    """Layers of one kind, in one direction or in both; dropout is on what a layer gives to the next."""

    cell: ClassVar[Cell]

    def __init__(
        self, inputs: int, width: int, layers: int = 1, bidirectional: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.width, directions = width, 2 if bidirectional else 1
        sizes = [inputs] + [directions * width] * (layers - 1)
        self.layers = nn.ModuleList(Layer(self.cell, size, width, directions) for size in sizes)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor | None = None, states: States | None = None) -> tuple[Tensor, States]:
        """x (K, n, T, inputs) to outputs (K, n, T, directions * width) of the last layer, and the states at the end.

        lengths: how many steps of each row count, (K, n), at least 1; outputs after them are zero. None: all.
        states: before the first step; None for zeros."""
        finals = []
        for depth, layer in enumerate(self.layers):
            before = None if states is None else tuple(part[:, :, depth] for part in states)
            x, final = layer(self.dropout(x) if depth else x, lengths, before)
            finals.append(final)
        return x, tuple(torch.stack(parts, dim=2) for parts in zip(*finals, strict=True))


class LSTM(Recurrent):
    """Gates in the order candidate, input, forget, output; one bias (4 width)."""

    cell = Cell(lstm, 4, 4, 2)


class GRU(Recurrent):
    """Gates in the order reset, update, candidate; a fourth part of the bias is the candidate's inside the reset."""

    cell = Cell(gru, 3, 4, 1)


class Elman(Recurrent):
    """A plain recurrent network with tanh."""

    cell = Cell(elman, 1, 1, 1)


def _reverse_rows(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Reverse each row of x (K, T, n, width), with its padding left in place. Applied twice it is the identity."""
    if lengths is None:
        return x.flip(1)
    positions, ends = torch.arange(x.shape[1], device=x.device)[:, None], lengths[:, None, :]
    order = torch.where(positions < ends, ends - 1 - positions, positions)
    return x.gather(1, order[..., None].expand(x.shape))


@torch.no_grad()
def initialise_recurrent(network: Recurrent) -> None:
    """Recurrent weights orthogonal, gate by gate (Saxe et al., ICLR 2014, arXiv:1312.6120), and an LSTM's forget gate
    open at first: 1 is added to its bias (Jozefowicz et al., ICML 2015)."""
    for layer in network.layers:
        assert isinstance(layer, Layer)
        for gate in layer.again.flatten(0, 1).chunk(layer.cell.weights, dim=-1):
            for weight in gate:
                nn.init.orthogonal_(weight)
        if isinstance(network, LSTM):
            layer.bias[..., 2 * layer.width : 3 * layer.width].add_(1.0)
