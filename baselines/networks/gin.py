"""Graph isomorphism network: each node adds its neighbours' vectors to its own, and a perceptron reads the sum.

Xu, Hu, Leskovec and Jegelka, "How powerful are graph neural networks?", ICLR 2019 (arXiv:1810.00826), equation 4.1,
with a learned epsilon, and the sum over the nodes of every layer (equation 4.2), or one node's vectors. The perceptrons
have layer normalisation, where the authors' have batch normalisation: no graph depends on those beside it.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ..encoding.encoding import Sizes
from ..layers.linear import Linear
from ..layers.norm import LayerNorm
from ._graphs import GraphNetwork

TASK = "classification"
READS = "graphs"
SETTINGS: dict[str, Any] = {"width": 32, "depth": 4, "dropout": 0.0, "readout": "graph"}
"""width: of a node's vector. depth: layers, each with a perceptron of one hidden layer. dropout: before the head.
readout: `graph`, all nodes, or `node`, the first one, whose neighbourhood the graph is."""


class Network(GraphNetwork):
    def __init__(self, sizes: Sizes, settings: Mapping[str, Any]) -> None:
        width, depth = settings["width"], settings["depth"]
        super().__init__(sizes, settings, width * (depth + 1))
        self.epsilon = nn.Parameter(torch.zeros(1, depth))
        self.first = nn.ModuleList(Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(LayerNorm(width) for _ in range(depth))
        self.second = nn.ModuleList(Linear(width, width) for _ in range(depth))

    def pass_messages(self, states: Tensor, adjacency: Tensor, present: Tensor) -> Tensor:
        """The sums over nodes after each layer, and before the first, side by side."""
        sums = [self.read_out(states)]
        layers = zip(self.epsilon.unbind(1), self.first, self.norms, self.second, strict=True)
        for epsilon, first, norm, second in layers:
            # The matrix's diagonal is the 1 of 1 + epsilon.
            states = adjacency @ states + epsilon.view(-1, 1, 1, 1) * states
            states = torch.relu(second(torch.relu(norm(first(states)))))
            sums.append(self.read_out(states * present))
        return torch.cat(sums, dim=-1)
