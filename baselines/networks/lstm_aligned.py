"""An LSTM transducer: one output token for each input token.

Graves, "Supervised sequence labelling with recurrent neural networks", 2012. Recurrent networks generalise regular
languages such as parity to any length where Transformers do not (Delétang et al., ICLR 2023, arXiv:2207.02098).
"""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ..encoding.encoding import PAD, Sizes
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..layers.recurrent import LSTM, initialise_recurrent
from . import Transducer

TASK = "aligned"
SETTINGS: dict[str, Any] = {"width": 64, "layers": 1, "bidirectional": False, "dropout": 0.0}
"""width: units of the embedding and of every LSTM layer, in each direction."""


class Network(Transducer):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        width, both = settings["width"], settings["bidirectional"]
        self.read = Embedding(sizes.source, width, PAD)
        self.lstm = LSTM(width, width, settings["layers"], both, settings["dropout"])
        self.head = Linear(width * (1 + both), sizes.outputs)
        initialise_recurrent(self.lstm)

    def features(self, source: Tensor, target: Tensor | None = None) -> Tensor:
        """Source ids (K, n, S) to inputs of the head, (K, n, S, width); the target is ignored."""
        return self.lstm(self.read(source), (source != PAD).sum(dim=-1).clamp(min=1))[0]
