"""A GRU encoder-decoder with attention.

Cho et al., EMNLP 2014 (arXiv:1406.1078); attention as Luong et al., EMNLP 2015 (arXiv:1508.04025). Lake and Baroni,
ICML 2018 (arXiv:1711.00350) found a GRU with attention the best on some splits of SCAN.
"""

from typing import Any

from ..layers.recurrent import GRU
from ._attentive import EncoderDecoder

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 128, "layers": 1, "dropout": 0.0}
"""width: units of the embeddings and of every GRU layer (the encoder's two directions have half each)."""


class Network(EncoderDecoder):
    kind = GRU
