"""An LSTM that gives one output token for each input token: a transducer, for tasks whose outputs are aligned.

Graves, "Supervised sequence labelling with recurrent neural networks", 2012. Recurrent networks carry regular
languages such as parity to any length where Transformers do not (Delétang et al., ICLR 2023, arXiv:2207.02098).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ..encoding import BOS, EOS, PAD, UNKNOWN, Sizes
from ._initial import recurrent

TASK = "aligned"
SETTINGS: dict[str, Any] = {"width": 64, "layers": 1, "bidirectional": False, "dropout": 0.0}
"""width: units of the embedding and of every LSTM layer, in each direction."""


class Network(nn.Module):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        width, layers, both = settings["width"], settings["layers"], settings["bidirectional"]
        between = settings["dropout"] if layers > 1 else 0.0
        self.read = nn.Embedding(sizes.source, width, padding_idx=PAD)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True, bidirectional=both, dropout=between)
        self.out = nn.Linear(width * (1 + both), sizes.outputs)
        recurrent(self.lstm)

    def forward(self, source: Tensor, target: Tensor | None = None) -> Tensor:
        """Source ids (n, S) to logits (n, S, words); the target is not looked at."""
        lengths = (source != PAD).sum(dim=1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.read(source), lengths, batch_first=True, enforce_sorted=False)
        x, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=source.shape[1])
        logits: Tensor = self.out(x)
        return logits

    @torch.no_grad()
    def generate(self, source: Tensor, limit: int) -> Tensor:
        """The likeliest token for each of the source's, ids (n, S); PAD where the source has PAD."""
        logits = self(source)
        logits[..., [PAD, BOS, EOS, UNKNOWN]] = -torch.inf
        found: Tensor = logits.argmax(dim=-1)
        return found.masked_fill(source == PAD, PAD)
