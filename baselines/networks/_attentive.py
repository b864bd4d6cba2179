"""A recurrent encoder-decoder with attention, for any recurrent layers."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.decoding import State, shift_right
from ..encoding.encoding import PAD, Sizes
from ..layers.dropout import Dropout
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..layers.recurrent import Recurrent, States, initialise_recurrent
from . import Writer


class EncoderDecoder(Writer):
    """Sutskever et al., NeurIPS 2014 (arXiv:1409.3215), with an encoder in both directions; attention as Luong et al.,
    EMNLP 2015 (arXiv:1508.04025), "general" score, context joined to the decoder's output and not fed back, so that
    teaching is one pass over time. Settings: width, layers, dropout."""

    kind: ClassVar[type[Recurrent]]

    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        width, layers, dropout = settings["width"], settings["layers"], settings["dropout"]
        if width % 2:
            raise ModelError(f"setting width = {width}: use an even number, half for each direction of the encoder")
        self.aligned = sizes.aligned
        self.read = Embedding(sizes.source, width, PAD)
        self.wrote = Embedding(sizes.outputs, width, PAD)
        self.encoder = self.kind(width, width // 2, layers, bidirectional=True, dropout=dropout)
        self.decoder = self.kind(width, width, layers, dropout=dropout)
        self.score = Linear(width, width, bias=False)
        self.join = Linear(2 * width, width)
        self.head = Linear(width, sizes.outputs)
        self.dropout = Dropout(dropout)
        initialise_recurrent(self.encoder)
        initialise_recurrent(self.decoder)

    def start(self, source: Tensor) -> State:
        """The state before the first token, from source ids (K, n, S)."""
        lengths = (source != PAD).sum(dim=-1).clamp(min=1)
        memory, states = self.encoder(self.dropout(self.read(source)), lengths)
        # Contiguous: otherwise every product with it, in each step, would copy it.
        return {"memory": memory.contiguous(), "padding": source == PAD} | name_states(states)

    def _decode(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Features (K, n, T, width) after each of `tokens` (K, n, T), and the state after the last."""
        before = tuple(state[name] for name in ("h", "c") if name in state)
        x, after = self.decoder(self.dropout(self.wrote(tokens)), states=before)
        scores = self.score(x) @ state["memory"].transpose(-1, -2)
        weights = scores.masked_fill(state["padding"][:, :, None, :], -1e9).softmax(dim=-1)
        joint = torch.tanh(self.join(torch.cat([x, weights @ state["memory"]], dim=-1)))
        return self.dropout(joint), state | name_states(after)

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (K, n, words) after `token` (K, n), and the state after it."""
        features, state = self._decode(state, token[..., None])
        return self.head(features)[:, :, 0], state

    def features(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (K, n, S) and the target ids to be taught (K, n, T) to what the head reads, (K, n, T, width)."""
        return self._decode(self.start(source), shift_right(target))[0]


def name_states(states: States) -> State:
    """The states of recurrent layers as entries of a decoder's state."""
    return dict(zip(("h", "c"), states, strict=False))
