"""Graph convolutional network: each node averages its own and its neighbours' vectors, weighted by their degrees.

Kipf and Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017 (arXiv:1609.02907),
equation 2. A graph is classified by the mean over its nodes, or by its first node.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..encoding.encoding import Sizes
from ..layers.linear import Linear
from ._graphs import GraphNetwork

TASK = "classification"
READS = "graphs"
SETTINGS: dict[str, Any] = {"width": 32, "depth": 4, "dropout": 0.0, "readout": "graph"}
"""width: of a node's vector. depth: layers; the first is the table of node labels. dropout: before the head. readout:
`graph`, all nodes, or `node`, the first one, whose neighbourhood the graph is."""


class Network(GraphNetwork):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        width = settings["width"]
        super().__init__(sizes, settings, width)
        self.layers = nn.ModuleList(Linear(width, width, bias=False) for _ in range(settings["depth"] - 1))

    def pass_messages(self, states: Tensor, adjacency: Tensor, present: Tensor) -> Tensor:
        """The mean over nodes after the last layer, or the first node's vector."""
        share = present * adjacency.sum(dim=-1, keepdim=True).clamp(min=1).rsqrt()
        smooth = share * adjacency * share.mT
        states = torch.relu(smooth @ states)
        for layer in self.layers:
            states = torch.relu(smooth @ layer(states))
        return self.read_out(states * present) / self.read_out(present)
