"""A plain (Elman) recurrent encoder-decoder with attention, to compare with gated cells (LSTM, GRU).

Elman, Cognitive Science 1990; attention as Luong et al., EMNLP 2015 (arXiv:1508.04025). Lake and Baroni, ICML 2018
(arXiv:1711.00350) have it beside the gated ones, as "SRN".
"""

from typing import Any

from ..layers.recurrent import Elman
from ._attentive import EncoderDecoder

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 128, "layers": 1, "dropout": 0.0}
"""width: units of the embeddings and of every layer (the encoder's two directions have half each)."""


class Network(EncoderDecoder):
    kind = Elman
