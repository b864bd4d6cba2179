"""An LSTM encoder-decoder with attention, the baseline of the literature on SCAN.

Sutskever et al., NeurIPS 2014 (arXiv:1409.3215); attention as Luong et al., EMNLP 2015 (arXiv:1508.04025),
"general" score, context joined to the decoder's output and not fed back, so that teaching is one fused pass.
Lake and Baroni, ICML 2018 (arXiv:1711.00350) tried such networks of 25 to 400 units in 1 or 2 layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..decoding import State, greedy, shifted
from ..encoding import PAD, Sizes
from ._initial import recurrent

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 128, "layers": 1, "dropout": 0.0}
"""width: units of the embeddings and of every LSTM layer (the encoder's two directions have half each)."""


class Network(nn.Module):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        width, layers, dropout = settings["width"], settings["layers"], settings["dropout"]
        between = dropout if layers > 1 else 0.0
        self.aligned = sizes.aligned
        self.read = nn.Embedding(sizes.source, width, padding_idx=PAD)
        self.wrote = nn.Embedding(sizes.outputs, width, padding_idx=PAD)
        self.encoder = nn.LSTM(width, width // 2, layers, batch_first=True, bidirectional=True, dropout=between)
        self.decoder = nn.LSTM(width, width, layers, batch_first=True, dropout=between)
        self.score = nn.Linear(width, width, bias=False)
        self.join = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, sizes.outputs)
        self.dropout = nn.Dropout(dropout)
        recurrent(self.encoder)
        recurrent(self.decoder)

    def start(self, source: Tensor) -> State:
        """The state before the first token, from source ids (n, S)."""
        lengths = (source != PAD).sum(dim=1)
        packed = pack_padded_sequence(
            self.dropout(self.read(source)), lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False
        )
        states, (h, c) = self.encoder(packed)
        memory, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        rows, layers = len(source), self.decoder.num_layers
        return {
            "memory": memory,
            "padding": source == PAD,
            "h": h.view(layers, 2, rows, -1).permute(2, 0, 1, 3).reshape(rows, layers, -1),
            "c": c.view(layers, 2, rows, -1).permute(2, 0, 1, 3).reshape(rows, layers, -1),
        }

    def _decode(self, state: State, tokens: Tensor) -> tuple[Tensor, State]:
        """Logits (n, T, words) after each of `tokens` (n, T), and the state after the last."""
        before = (state["h"].transpose(0, 1).contiguous(), state["c"].transpose(0, 1).contiguous())
        x, (h, c) = self.decoder(self.dropout(self.wrote(tokens)), before)
        scores = torch.bmm(self.score(x), state["memory"].transpose(1, 2))
        weights = scores.masked_fill(state["padding"][:, None, :], -1e9).softmax(dim=-1)
        context = torch.bmm(weights, state["memory"])
        joint = torch.tanh(self.join(torch.cat([x, context], dim=-1)))
        logits: Tensor = self.out(self.dropout(joint))
        return logits, state | {"h": h.transpose(0, 1), "c": c.transpose(0, 1)}

    def step(self, state: State, token: Tensor) -> tuple[Tensor, State]:
        """Logits (n, words) after `token` (n,), and the state after it."""
        logits, state = self._decode(state, token[:, None])
        return logits[:, 0], state

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (n, S) and the target ids to be taught (n, T) to logits (n, T, words)."""
        return self._decode(self.start(source), shifted(target))[0]

    def generate(self, source: Tensor, limit: int) -> Tensor:
        """The greedy output for source ids (n, S): ids (n, T), T <= limit (or S in an aligned task)."""
        return greedy(self, source, limit, self.aligned)
