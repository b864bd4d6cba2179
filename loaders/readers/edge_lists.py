"""Graphs given as lists of edges and of node labels, with structural features of each node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadData
from ._graph import Nodes, count_degrees, list_neighbours

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path], *, graphs: dict[str, list[str]], field: str, label: str) -> pa.Table:
    """A row for each node of the graphs, in the order of `graphs` (`{name: [file of edges, file of labels]}`) and of
    the nodes' numbers. A line of edges has two nodes; a line of labels, after a header, has a node and its label.

    Fields (float64), for the undirected graph: `degree`; `neighbour_degree_mean`, `neighbour_degree_max` and
    `neighbour_degree_min`; `within_two`, the nodes at most two steps away; `triangles`; `clustering`, the share of
    pairs of neighbours that are adjacent; `share`, the degree divided by the number of other nodes. Also `label`, and
    `field`, the graph's name. Raises `BadData` if a file has another format.
    """
    import pyarrow as pa

    tables = []
    for name, (edges, labels) in graphs.items():
        known = dict(_read_pairs(files[labels], labels, 1))
        index_of = {node: at for at, node in enumerate(sorted(known))}
        try:
            ends = [(index_of[a], index_of[b]) for a, b in _read_pairs(files[edges], edges, 0)]
        except KeyError as error:
            raise BadData(f"{edges}: node {error} has no label in {labels}") from error
        near = list_neighbours(np.array(ends, np.int64).reshape(-1, 2), len(index_of), edges)
        fields = _compute_structure(near) | {label: np.array([known[node] for node in index_of], np.int64)}
        tables.append(pa.table(fields | {field: [name] * len(index_of)}))
    return pa.concat_tables(tables)


def _read_pairs(path: Path, name: str, head: int) -> list[tuple[int, int]]:
    pairs = []
    for number, line in enumerate(path.read_text("utf-8").splitlines()[head:], head + 1):
        try:
            first, second = map(int, line.split())
        except ValueError as error:
            raise BadData(f"{name}, line {number}: {line!r} is not two whole numbers") from error
        pairs.append((first, second))
    return pairs


def _compute_structure(near: Nodes) -> dict[str, np.ndarray]:
    sets = [set(item.tolist()) for item in near]
    degree = count_degrees(near)
    around = [degree[item] if len(item) else np.zeros(1) for item in near]
    triangles = np.array([sum(len(sets[other] & own) for other in own) / 2 for own in sets])
    pairs = degree * (degree - 1) / 2
    return {
        "degree": degree,
        "neighbour_degree_mean": np.array([item.mean() for item in around]),
        "neighbour_degree_max": np.array([item.max() for item in around]),
        "neighbour_degree_min": np.array([item.min() for item in around]),
        "within_two": np.array(
            [float(len(own.union(*(sets[item] for item in own)) - {at})) for at, own in enumerate(sets)]
        ),
        "triangles": triangles,
        "clustering": np.divide(triangles, pairs, out=np.zeros(len(near)), where=pairs > 0),
        "share": degree / (len(near) - 1),
    }
