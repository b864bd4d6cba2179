"""A recurrent network without attention or external memory: it reads its input once, then writes from its state alone.

The "RNN" and the "LSTM" of Delétang et al., ICLR 2023 (arXiv:2207.02098): after the input the network is fed blanks, so
that its information about the input is in a state of fixed size. This makes it a finite automaton (Elman, Cognitive
Science 1990) or, if the state counts, a counter machine (LSTM).
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ...core.errors import ModelError
from ..encoding.decoding import State
from ..encoding.encoding import PAD, Sizes
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..layers.recurrent import GRU, LSTM, Elman, Recurrent, initialise_recurrent
from . import Writer
from ._attentive import name_states

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 256, "layers": 1, "cell": "elman"}
"""width: units of the embedding and of every layer. cell: elman, gru or lstm."""

CELLS: dict[str, type[Recurrent]] = {"elman": Elman, "gru": GRU, "lstm": LSTM}
BLANK = PAD
"""The token fed while the output is written; it does not occur within an input."""


class Network(Writer):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        width, cell = settings["width"], settings["cell"]
        if cell not in CELLS:
            raise ModelError(f"setting cell = {cell}: use {', '.join(CELLS)}")
        self.aligned = sizes.aligned
        self.read = Embedding(sizes.source, width)
        self.layers = CELLS[cell](width, width, settings["layers"])
        self.head = Linear(width, sizes.outputs)
        nn.init.normal_(self.read.weight, std=width**-0.5)
        initialise_recurrent(self.layers)

    def start(self, source: Tensor) -> State:
        """The state once source ids (K, n, S) are read."""
        lengths = (source != PAD).sum(dim=-1).clamp(min=1)
        return name_states(self.layers(self.read(source), lengths)[1])

    def _write(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Inputs of the head, (K, n, T, width), for the steps of `token` (K, n, T), and the state after them."""
        blank = self.read(token.new_full(token.shape, BLANK))
        x, after = self.layers(blank, states=tuple(state.values()))
        return x, name_states(after)

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (K, n, words) of the next token, and the state after it; `token` is ignored."""
        x, state = self._write(state, token[..., None])
        return self.head(x)[:, :, 0], state

    def features(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (K, n, S) to inputs of the head, (K, n, T, width), T as wide as `target`, whose tokens are
        ignored."""
        return self._write(self.start(source), target)[0]
