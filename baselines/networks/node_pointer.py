"""Message passing on a graph that is given as a text, with one answer for each node: a pointer to a node.

The text has sections between words that no answer has: first the nodes, then lone nodes (a source), pairs (edges) and
triples (edges with a weight), as `loaders/generators/tasks/graph_algorithms.py` writes them. Messages of a perceptron,
their maximum over neighbours, what a node read given to every round again, and pointers scored by a node and a
candidate: the message-passing network of Velickovic et al., "The CLRS algorithmic reasoning benchmark", ICML 2022
(arXiv:2205.15659), section 4, without hints. A node reads its position and whether it is the source; a message and a
score read the edge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import EOS, PAD, Sizes
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from . import TextNetwork

TASK = "sequence"
SETTINGS: dict[str, Any] = {"width": 32, "rounds": 0}
"""width: of a node's state and of a message. rounds: of messages; 0 for as many as a graph has nodes."""

_NEVER = -1e4


@dataclass(frozen=True)
class Graphs:
    """A batch of graphs with up to N nodes each."""

    names: Tensor
    """The node's word (K, n, N), PAD after a graph's last node."""
    source: Tensor
    """1 for a source, else 0 (K, n, N)."""
    edges: Tensor
    """1 where there is an edge from node i to node j, else 0 (K, n, N, N)."""
    weights: Tensor
    """The word of an edge's weight (K, n, N, N), PAD where it has none."""


def read_graphs(source: Tensor, copies: Tensor) -> Graphs:
    """Parse source ids (K, n, S), given the output word of each input word, PAD for words between sections."""
    word = copies[source] != PAD
    between = ~word & (source != PAD)
    index = torch.arange(source.shape[-1], device=source.device)
    start = torch.where(between, index, -1).cummax(dim=-1).values
    first = word & (start >= 0) & (index == start + 1)
    names = torch.where(start < 0, source, PAD)
    names = names[..., : max(1, int((names != PAD).sum(dim=-1).max()))]
    node = (source[..., None] == names[..., None, :]).int().argmax(dim=-1)

    def following(values: Tensor, by: int) -> Tensor:
        return F.pad(values, (0, by))[..., by:]

    pair = first & following(word, 1)
    count = names.shape[-1]
    position = node * count + following(node, 1)
    weight = torch.where(pair & following(word, 1) & following(word, 2), following(source, 2), PAD)
    flat = torch.zeros(*names.shape[:-1], count * count, dtype=torch.int64, device=source.device)
    edges = flat.scatter_add(-1, position, pair.long()).clamp(max=1)
    weights = flat.scatter_reduce(-1, position, weight, "amax")
    alone = torch.zeros_like(names).scatter_add(-1, node, (first & ~pair).long())
    square = *names.shape, count
    return Graphs(names, alone, edges.view(square), weights.view(square))


class Network(TextNetwork):
    """One set of weights for all rounds. An answer is the word of a node; the end of the text follows the last node."""

    copies: Tensor

    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        super().__init__()
        if not any(sizes.copies):
            raise ModelError("this network answers with words of its input, and no answer in training has one")
        width, self.rounds, self.outputs = settings["width"], settings["rounds"], sizes.outputs
        self.register_buffer("copies", torch.tensor(sizes.copies), persistent=False)
        self.read = Linear(2, width)
        self.hear, self.send, self.along = Linear(width, width), Linear(width, width), Linear(3, width)
        self.weigh = Embedding(sizes.source, width, padding=PAD)
        self.keep, self.take = Linear(width, width, bias=False), Linear(width, width, bias=False)
        self.point_from, self.point_to, self.point_along = Linear(width, width), Linear(width, width), Linear(3, width)
        self.point_weight = Embedding(sizes.source, width, padding=PAD)
        self.head = Linear(width, 1)

    def features(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (K, n, S) to what scores each node as another's answer, (K, n, N, N, width)."""
        graphs = read_graphs(source, self.copies)
        present = (graphs.names != PAD)[..., None]
        count = graphs.names.shape[-1]
        dtype = self.head.weight.dtype
        self_edges = torch.eye(count, dtype=dtype, device=source.device).expand(graphs.edges.shape)
        edges = graphs.edges.to(dtype)
        kinds = torch.stack([edges.mT, edges, self_edges], dim=-1)
        weights = torch.maximum(graphs.weights, graphs.weights.mT)
        linked = kinds.amax(dim=-1, keepdim=True) * present[:, :, :, None] * present[:, :, None]
        lengths = present.sum(dim=2, keepdim=True)
        position = torch.arange(count, dtype=dtype, device=source.device)[:, None] / lengths
        given = self.read(torch.cat([graphs.source[..., None].to(dtype), position], dim=-1))
        along = self.along(kinds) + self.weigh(weights)
        state = torch.relu(given)
        own_rounds = torch.full_like(lengths, self.rounds) if self.rounds else lengths
        for done in range(int(own_rounds.max())):
            sent = torch.relu(self.hear(state)[:, :, :, None] + self.send(state)[:, :, None] + along)
            heard = (sent * linked).amax(dim=3)
            state = torch.where(own_rounds > done, torch.relu(given + self.keep(state) + self.take(heard)), state)
        scored = self.point_from(state)[:, :, :, None] + self.point_to(state)[:, :, None]
        return torch.relu(scored + self.point_along(kinds) + self.point_weight(weights))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (K, n, S) to logits (K, n, T, words), T the target's width."""
        scores = self.head(self.features(source, target)).squeeze(-1)
        names = read_graphs(source, self.copies).names
        scores = torch.where((names != PAD)[:, :, None], scores, _NEVER)
        # Node T - 1 or later of a longer graph beside this one is padding; the end is the only word after a last node.
        width = target.shape[-1]
        words = self.copies[names][:, :, None].expand(scores.shape)
        logits = scores.new_full((*scores.shape[:3], self.outputs), _NEVER).scatter(-1, words, scores)
        logits = F.pad(logits, (0, 0, 0, max(0, width - logits.shape[2])), value=_NEVER)[:, :, :width]
        ended = torch.arange(width, device=source.device) >= (names != PAD).sum(dim=-1, keepdim=True)
        end = torch.full_like(logits, _NEVER)
        end[..., EOS] = 0
        return torch.where(ended[..., None], end, logits)

    @torch.no_grad()
    def generate(self, source: Tensor, limit: int) -> Tensor:
        """The likeliest node for each node of the source ids (K, n, S), EOS after the last; ids (K, n, N + 1)."""
        count = read_graphs(source, self.copies).names.shape[-1]
        return self(source, source.new_zeros(*source.shape[:2], count + 1)).argmax(dim=-1)
