"""What graph networks share: a batch of graphs as node vectors and dense adjacency matrices."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import PAD, Sizes
from ..layers.dropout import Dropout
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from . import RowNetwork

_CELLS = 1 << 24
"""The most entries of the adjacency matrices of a batch in evaluation, or of its labels' vectors."""


class GraphNetwork(RowNetwork):
    """A class of graphs, from node vectors after some layers, whose sum or mean is classified. A subclass has
    `pass_messages`, and says how wide its features are."""

    def __init__(self, sizes: Sizes, settings: Mapping[str, Any], features: int) -> None:
        super().__init__()
        if not (sizes.source and sizes.numbers):
            raise ModelError("this network reads graphs: set inputs = 'graphs' (for one input that is a graph)")
        if settings["readout"] not in ("graph", "node"):
            raise ModelError(f"setting readout = {settings['readout']!r}: use graph or node")
        self.hidden, self.width, self.readout = settings["width"], features, settings["readout"]
        self.read = Embedding(sizes.source, self.hidden, padding=PAD)
        self.dropout = Dropout(settings["dropout"])
        self.head = Linear(features, sizes.outputs)

    def pass_messages(self, states: Tensor, adjacency: Tensor, present: Tensor) -> Tensor:
        """Node vectors (K, n, N, hidden), adjacency matrices with 1 on the diagonal of each node (K, n, N, N), and 1
        for each node (K, n, N, 1), to features of the graphs (K, n, width)."""
        raise NotImplementedError

    def read_out(self, states: Tensor) -> Tensor:
        """Node vectors (K, n, N, ..) to their sum, or to the first node's: (K, n, ..)."""
        return states[:, :, 0] if self.readout == "node" else states.sum(dim=2)

    def embed(self, nodes: Tensor, edges: Tensor) -> Tensor:
        """Ids of nodes' labels (K, n, N, L) and edges (K, n, E, 2) to each node's vector, the mean of its labels', and
        its row of the adjacency matrix, side by side, (K, n, N, hidden + N). The diagonal of the matrix is 1 for nodes
        and 0 for padding."""
        labelled = (nodes != PAD).sum(dim=-1, keepdim=True)
        states: Tensor = self.read(nodes).sum(dim=-2) / labelled.clamp(min=1)
        adjacency = torch.diag_embed((labelled[..., 0] > 0).to(states.dtype))
        ends = edges.long()
        positions = ends[..., 0] * nodes.shape[-2] + ends[..., 1]
        # Edges that pad are 0-0, whose entry is 1 in any case.
        directed = adjacency.flatten(-2).scatter(-1, positions, 1.0).view_as(adjacency)
        return torch.cat([states, torch.maximum(directed, directed.mT)], dim=-1)

    def encode(self, x: Tensor) -> Tensor:
        states, adjacency = x[..., : self.hidden], x[..., self.hidden :]
        present = adjacency.diagonal(dim1=-2, dim2=-1)[..., None]
        return self.dropout(self.pass_messages(states, adjacency, present))

    def rows_at_once(self, nodes: Tensor, edges: Tensor) -> int:
        """Rows in a batch in evaluation: fewer for large graphs."""
        count, labels = nodes.shape[-2:]
        return max(1, _CELLS // (count * max(count, labels * self.hidden)))
