"""Syntactic attention: where to look is decided by context, what to write by the words looked at, and by nothing else.

Russin, Jo, O'Reilly and Bengio, "Compositional generalization in a deep seq2seq model by separating syntax and
semantics", 2019 (arXiv:1904.09708), equations 1-6. The semantic stream embeds each word without context; the
syntactic stream (a bidirectional LSTM) only steers the attention; the output is linear in the attended meaning.
A word's role comes from the words around it and not from itself (equation 2, as in the authors' code, here without
their second LSTM on top). The decoder reads no token that it wrote, so learning and decoding run alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..decoding import State, greedy
from ..encoding import EOS, PAD, Sizes
from ._initial import recurrent

TASK = "sequence"
SETTINGS: dict[str, Any] = {"meaning": 120, "syntax": 200, "dropout": 0.5}
"""meaning: units of a word's semantic embedding; syntax: units of the syntactic encoder's two directions together,
and of the decoder. dropout: on both embeddings."""


class Network(nn.Module):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        meaning, syntax = settings["meaning"], settings["syntax"]
        self.aligned = sizes.aligned
        self.meaning = nn.Embedding(sizes.source, meaning, padding_idx=PAD)
        self.syntax = nn.Embedding(sizes.source, syntax // 2, padding_idx=PAD)
        self.encoder = nn.LSTM(syntax // 2, syntax // 2, batch_first=True, bidirectional=True)
        self.first = nn.Linear(syntax, syntax)
        self.decoder = nn.LSTMCell(syntax, syntax)
        self.out = nn.Linear(meaning, sizes.outputs)
        self.dropout = nn.Dropout(settings["dropout"])
        recurrent(self.encoder)
        recurrent(self.decoder)
        nn.init.normal_(self.syntax.weight, std=0.1)  # a word seldom seen stays near all others

    def start(self, source: Tensor) -> State:
        """The state before the first token, from source ids (n, S), to which an EOS is joined: a word whose
        meaning is to stop."""
        ended = (source != PAD).sum(dim=1, keepdim=True)
        source = torch.cat([source, torch.full_like(source[:, :1], PAD)], dim=1).scatter(1, ended, EOS)
        packed = pack_padded_sequence(
            self.dropout(self.syntax(source)), ended.flatten().cpu() + 1, batch_first=True, enforce_sorted=False
        )
        states, (h, _) = self.encoder(packed)
        context, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        before, after = context.chunk(2, dim=2)
        roles = torch.cat([F.pad(before, (0, 0, 1, -1)), F.pad(after, (0, 0, -1, 1))], dim=2)
        control = torch.relu(self.first(torch.cat([h[0], h[1]], dim=1)))
        return {
            "roles": roles,
            "meanings": self.out(self.dropout(self.meaning(source))),
            "hidden": torch.where(source == PAD, -1e9, 0.0),
            "control": control,
            "cell": torch.zeros_like(control),
        }

    def _advance(self, state: State) -> tuple[Tensor, State]:
        """The attention (n, S + 1) at this step, and the state after it. What is written leaves no trace in it."""
        scores = torch.bmm(state["roles"], state["control"][:, :, None])[:, :, 0] + state["hidden"]
        weights = scores.softmax(dim=1)
        context = torch.bmm(weights[:, None, :], state["roles"])[:, 0]
        control, cell = self.decoder(context, (state["control"], state["cell"]))
        return weights, state | {"control": control, "cell": cell}

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (n, words) of the next token, and the state after it; `token` is not looked at."""
        weights, state = self._advance(state)
        return torch.bmm(weights[:, None, :], state["meanings"])[:, 0], state

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (n, S) to logits (n, T, words), T as wide as `target`, whose tokens are not looked at.

        `meanings` holds the output layer of each word's meaning: being linear, it may come before the average.
        """
        state = self.start(source)
        looked = []
        for _ in range(target.shape[1]):
            weights, state = self._advance(state)
            looked.append(weights)
        return torch.bmm(torch.stack(looked, dim=1), state["meanings"])

    def generate(self, source: Tensor, limit: int) -> Tensor:
        """The greedy output for source ids (n, S): ids (n, T), T <= limit (or S in an aligned task)."""
        return greedy(self, source, limit, self.aligned)
