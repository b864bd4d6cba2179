"""Graphs as tables of nodes, with summaries of each node's neighbours."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData

Nodes = list[NDArray[np.int64]]


def list_neighbours(edges: NDArray[np.int64], nodes: int, where: str) -> Nodes:
    """Return the neighbours of each node in ascending order, each once and without the node itself; `edges`, of shape
    (n, 2), are undirected."""
    if edges.size and not (edges.min() >= 0 and edges.max() < nodes):
        raise BadData(f"{where}: an edge to node {int(edges.max())}, but the nodes are 0 to {nodes - 1}")
    both = np.concatenate([edges, edges[:, ::-1]])
    both = np.unique(both[both[:, 0] != both[:, 1]], axis=0)
    ends = np.searchsorted(both[:, 0], np.arange(nodes + 1))
    return [both[start:end, 1] for start, end in pairwise(ends.tolist())]


def count_degrees(of: Nodes) -> NDArray[np.float64]:
    return np.array([len(adjacent) for adjacent in of], np.float64)


def list_common_features(of: Nodes, features: list[list[int]], most: int, prefix: str) -> list[str]:
    """List for each node the `most` features that are most common among its neighbours, as words such as "f17": the
    most common first, ties by the lower number."""
    texts = []
    for near in of:
        counts = Counter(feature for node in near.tolist() for feature in features[node])
        chosen = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
        texts.append(" ".join(f"{prefix}{feature}" for feature, _ in chosen))
    return texts
