"""A graph as a text: the labels of its nodes, and its edges.

`"6 6 8;0-1 1-2"` has the nodes 0, 1 and 2, with the labels 6, 6 and 8, and two undirected edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData


def format_graph(labels: Sequence[int], edges: Iterable[tuple[int, int]]) -> str:
    """The text of a graph: its edges in ascending order, each once, without loops."""
    once = sorted({(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]})
    return f"{' '.join(map(str, labels))};{' '.join(f'{first}-{second}' for first, second in once)}"


def parse_graph(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The labels of a graph's nodes (n,), at least one, and its edges (m, 2); `BadData` if the text is no graph."""
    nodes, _, ends = str(text).partition(";")
    try:
        labels = np.array(nodes.split(), np.int64)
        edges = np.array([edge.split("-") for edge in ends.split()], np.int64).reshape(-1, 2)
    except (ValueError, OverflowError) as error:
        raise BadData(f'{str(text)[:40]!r} is no graph such as "6 6 8;0-1 1-2": {error}') from error
    if not len(labels) or (edges.size and not 0 <= edges.min() <= edges.max() < len(labels)):
        raise BadData(f"{str(text)[:40]!r} is no graph: it has {len(labels)} nodes, and edges between others")
    return labels, edges
