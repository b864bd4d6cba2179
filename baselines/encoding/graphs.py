"""Graphs as the labels of their nodes and their edges, padded to the largest graph among the rows."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from ...loaders.batching.graphs import NO_LABEL, parse_graph
from .encoding import PAD, AnswerEncoding, Sizes

_UNSEEN = 1
"""The id of all node labels that no training graph has; those of training follow."""


class GraphEncoding(AnswerEncoding):
    """One input whose texts are graphs (`loaders/batching/graphs.py`). `sizes.source` is the number of node ids,
    `sizes.numbers` an edge's two ends."""

    def __init__(self, task: Task, train: Columns) -> None:
        if len(task.inputs) != 1 or train[task.inputs[0]].dtype != object:
            raise ModelError(f"setting inputs = 'graphs' needs one input, a graph; this task has {task.inputs}")
        super().__init__(task, train)
        labels = np.unique(np.concatenate([np.unique(parse_graph(text)[0]) for text in train[task.inputs[0]]]))
        self.labels: NDArray[np.int64] = labels[labels != NO_LABEL]
        self.sizes = Sizes(self.targets.outputs, numbers=2, source=_UNSEEN + 1 + len(self.labels), names=task.names)
        self.encoding = f"graphs: {task.inputs[0]} ({len(self.labels)} node labels)"

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """Ids of the nodes' labels (n, N, L), PAD after a node's last label and a graph's last node, and edges (n, E,
        2), after the last 0-0; both int64. A node without a label has that of the unseen ones."""
        graphs = [parse_graph(text) for text in batch[self.task.inputs[0]]]
        shape = np.array([labels.shape for labels, _ in graphs]).reshape(-1, 2).max(axis=0, initial=1)
        nodes = np.full((len(graphs), *shape), PAD, np.int64)
        edges = np.zeros((len(graphs), max((len(ends) for _, ends in graphs), default=0), 2), np.int64)
        for row, (labels, ends) in enumerate(graphs):
            indices = np.searchsorted(self.labels, labels).clip(max=len(self.labels) - 1)
            seen = self.labels[indices] == labels
            own = nodes[row, : labels.shape[0], : labels.shape[1]]
            own[...] = np.where(seen, indices + _UNSEEN + 1, np.where(labels == NO_LABEL, PAD, _UNSEEN))
            own[:, 0] = np.where(own[:, 0] == PAD, _UNSEEN, own[:, 0])
            edges[row, : len(ends)] = ends
        return torch.from_numpy(nodes), torch.from_numpy(edges)
