"""A graph as a text: the labels of its nodes, and its edges.

`"6 6 8;0-1 1-2"` has the nodes 0, 1 and 2, with the labels 6, 6 and 8, and two undirected edges. A node may have
several labels, such as its words, or none: `"3,17 . 5;0-1 0-2"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData

NO_LABEL = np.iinfo(np.int64).min
"""What follows the last label of a node that has fewer than another."""

_UNLABELLED = "."


def format_graph(labels: Sequence[Sequence[int]], edges: Iterable[tuple[int, int]]) -> str:
    """The text of a graph, from the labels of each node, 0 or more: its edges in ascending order, each once, without
    loops."""
    once = sorted({(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]})
    nodes = " ".join(",".join(map(str, own)) or _UNLABELLED for own in labels)
    return f"{nodes};{' '.join(f'{first}-{second}' for first, second in once)}"


def parse_graph(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The labels of a graph's nodes (n, most labels of a node), `NO_LABEL` after a node's last one, and its edges (m,
    2); n is at least 1. `BadData` if the text is no graph."""
    nodes, _, ends = str(text).partition(";")
    try:
        own = [[] if node == _UNLABELLED else node.split(",") for node in nodes.split()]
        counts = np.array([len(labels) for labels in own], np.int64)
        labels = np.full((len(own), counts.max(initial=1)), NO_LABEL)
        labels[np.arange(labels.shape[1]) < counts[:, None]] = np.array(list(chain.from_iterable(own)), np.int64)
        edges = np.array([edge.split("-") for edge in ends.split()], np.int64).reshape(-1, 2)
    except (ValueError, OverflowError) as error:
        raise BadData(f'{str(text)[:40]!r} is no graph such as "6 6 8;0-1 1-2": {error}') from error
    if not len(labels) or (edges.size and not 0 <= edges.min() <= edges.max() < len(labels)):
        raise BadData(f"{str(text)[:40]!r} is no graph: it has {len(labels)} nodes, and edges between others")
    return labels, edges
