"""A recurrent controller beside a memory that it changes by soft actions.

It reads the whole input, then is fed blanks while it writes, so that the input is available only through its state and
its memory (Delétang et al., ICLR 2023, arXiv:2207.02098). The hidden state is a tanh; their released code has a
ReLU there.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from ..encoding.decoding import State
from ..encoding.encoding import PAD, Sizes
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from . import Writer

BLANK = PAD
"""The token fed while the output is written; it does not occur within an input."""


class Machine(Writer, ABC):
    """A plain recurrent network that at every step reads its memory's first cell and its hidden state, gives a value to
    be written, and takes a mixture of actions. The first action, taken with what was read as value, changes nothing.

    A state has "memory" (K, n, cells, cell), "hidden" (K, n, width) and the other entries of `_empty`."""

    nothing: Tensor

    def __init__(self, sizes: Sizes, width: int, cell: int, actions: int) -> None:
        super().__init__()
        self.aligned, self.cell, self.actions = sizes.aligned, cell, actions
        self.read = Embedding(sizes.source, width)
        self.again = Linear(width + cell, width)
        self.act = Linear(width, cell + actions)
        self.head = Linear(width, sizes.outputs)
        nn.init.normal_(self.read.weight, std=width**-0.5)
        self.register_buffer("nothing", torch.eye(actions)[0], persistent=False)

    @abstractmethod
    def _empty(self, source: Tensor) -> State:
        """A memory before anything is read, for source ids (K, n, S)."""

    @abstractmethod
    def _changed(self, state: State, actions: Tensor, value: Tensor) -> Tensor:
        """The memory after actions (K, n, actions), weights that sum to 1, with a value (K, n, cell)."""

    def _advance(self, state: State, x: Tensor, alive: Tensor | None = None) -> State:
        """The state after x (K, n, width), a token's vector; rows that are not alive (K, n, 1) do not change."""
        hidden, seen = state["hidden"], state["memory"][:, :, 0]
        after = torch.tanh(x + self.again(torch.cat([hidden, seen], dim=-1)))
        value, scores = self.act(after).split([self.cell, self.actions], dim=-1)
        shares = scores.softmax(dim=-1)
        if alive is not None:
            after, value = torch.where(alive, after, hidden), torch.where(alive, value, seen)
            shares = torch.where(alive, shares, self.nothing)
        return state | {"hidden": after, "memory": self._changed(state, shares, value)}

    def _blank(self, source: Tensor) -> Tensor:
        """The vector fed while the output is written, (K, 1, width)."""
        return self.read(torch.full_like(source[:, :1, 0], BLANK))

    def start(self, source: Tensor) -> State:
        """The state once source ids (K, n, S) are read."""
        state = self._empty(source)
        state["hidden"] = self.head.weight.new_zeros(*source.shape[:2], self.head.weight.shape[-1])
        alive = (source != PAD)[..., None]
        for x, going in zip(self.read(source).unbind(2), alive.unbind(2), strict=True):
            state = self._advance(state, x, going)
        return state

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (K, n, words) of the next token, and the state after it; `token` is ignored."""
        state = self._advance(state, self._blank(token[..., None]))
        return self.head(state["hidden"]), state

    def features(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (K, n, S) to inputs of the head, (K, n, T, width), T as wide as `target`, whose tokens are
        ignored."""
        state, blank = self.start(source), self._blank(source)
        hidden = []
        for _ in range(target.shape[-1]):
            state = self._advance(state, blank)
            hidden.append(state["hidden"])
        return torch.stack(hidden, dim=2)
