"""An LSTM encoder-decoder with attention, the usual baseline on SCAN.

Sutskever et al., NeurIPS 2014 (arXiv:1409.3215); Luong et al., EMNLP 2015 (arXiv:1508.04025). Lake and Baroni, ICML
2018 (arXiv:1711.00350) tried such networks of 25 to 400 units in 1 or 2 layers.
"""

from typing import Any

from ..layers.recurrent import LSTM
from ._attentive import EncoderDecoder

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 128, "layers": 1, "dropout": 0.0}
"""width: units of the embeddings and of every LSTM layer (the encoder's two directions have half each)."""


class Network(EncoderDecoder):
    kind = LSTM
