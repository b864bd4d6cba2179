"""Message passing between tokens: one output for each token, after as many rounds as the row has tokens.

Gilmer et al., "Neural message passing for quantum chemistry", ICML 2017 (arXiv:1704.01212), equations 1 and 2; messages
by the kind of edge and a gated update as Li et al., ICLR 2016 (arXiv:1511.05493); what a node read is given to every
round again, as Battaglia et al., "Relational inductive biases", 2018 (arXiv:1806.01261), figure 6c.
"""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import PAD, Sizes
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from . import Transducer

TASK = "aligned"
SETTINGS: dict[str, Any] = {"width": 64, "graph": "chain", "rounds": 0}
"""width: of a node's state and of a message. graph: `chain`, each token beside the next, or `full`, every token beside
every other. rounds: of messages; 0 for as many as a row has tokens, in which a chain is crossed from end to end."""


class Network(Transducer):
    """One set of weights for all rounds: an edge from an earlier token has one kind, from a later token another."""

    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        if settings["graph"] not in ("chain", "full"):
            raise ModelError(f"setting graph = {settings['graph']!r}: use chain or full")
        self.width, self.rounds = settings["width"], settings["rounds"]
        self.messages = _sum_neighbour_messages if settings["graph"] == "chain" else _average_all_messages
        self.read = Embedding(sizes.source, self.width, padding=PAD)
        self.speak = Linear(self.width, 3 * self.width)
        """A node's share in the messages that it receives, sends to later tokens, and sends to earlier ones."""
        self.hear = Linear(self.width, 3 * self.width)
        self.remember = Linear(self.width, 3 * self.width)
        self.recall = Linear(self.width, 3 * self.width, bias=False)
        self.head = Linear(self.width, sizes.outputs)

    def features(self, source: Tensor, target: Tensor | None = None) -> Tensor:
        """Source ids (K, n, S) to the nodes' last states (K, n, S, width); the target is ignored."""
        present = (source != PAD)[..., None]
        lengths = present.sum(dim=2, keepdim=True)
        # A row's rounds are its own, so that it does not depend on longer rows beside it.
        own_rounds = torch.full_like(lengths, self.rounds) if self.rounds else lengths
        state: Tensor = self.read(source)
        recalled = self.recall(state)
        for done in range(int(own_rounds.max()) if own_rounds.numel() else 0):
            own, later, earlier = self.speak(state).chunk(3, dim=-1)
            messages = self.messages(own, later, earlier, present)
            updated = _update_gated_unit(self.hear(messages) + recalled, self.remember(state), state)
            state = torch.where(own_rounds > done, updated, state)
        return state


def _update_gated_unit(heard: Tensor, remembered: Tensor, state: Tensor) -> Tensor:
    """A gated recurrent unit (Cho et al., EMNLP 2014, arXiv:1406.1078), its reset after the product."""
    width = state.shape[-1]
    gates = torch.sigmoid(heard[..., : 2 * width] + remembered[..., : 2 * width])
    reset, keep = gates.chunk(2, dim=-1)
    fresh = torch.tanh(heard[..., 2 * width :] + reset * remembered[..., 2 * width :])
    return torch.lerp(fresh, state, keep)


def _sum_neighbour_messages(own: Tensor, later: Tensor, earlier: Tensor, present: Tensor) -> Tensor:
    """The sum of the messages from the token before and the token after, (K, n, S, width); 0 for a token alone.

    own, later, earlier: a node's shares in messages received, sent to a later token, and sent to an earlier one.
    present (K, n, S, 1): false where there is padding, which sends nothing."""
    sent = torch.zeros_like(own)
    for share, by in ((later, 1), (earlier, -1)):
        there = F.pad(present.to(own.dtype), (0, 0, by, -by))
        sent = sent + torch.relu(own + F.pad(share, (0, 0, by, -by))) * there
    return sent


def _average_all_messages(own: Tensor, later: Tensor, earlier: Tensor, present: Tensor) -> Tensor:
    """The mean message from all other tokens, (K, n, S, width): a mean, since a sum would grow with the row.

    Arguments as those of `_sum_neighbour_messages`."""
    position = torch.arange(own.shape[2], device=own.device)
    before = (position[None, :] < position[:, None])[..., None]
    linked = (position[None, :] != position[:, None])[..., None] & present[:, :, None]
    share = torch.where(before, later[:, :, None], earlier[:, :, None])
    sent = (torch.relu(own[:, :, :, None] + share) * linked).sum(dim=3)
    return sent / linked.sum(dim=3).clamp(min=1)
