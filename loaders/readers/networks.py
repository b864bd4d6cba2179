"""Networks as tables of nodes, with summaries of each node's neighbours; sets of graphs as tables of graphs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.documents import read_json
from ...core.draws import draw_permutation
from ..batching.graphs import format_graph
from ._arrow_types import to_tensor_column
from .arrays import load_matlab

PUBLISHED_FORM = True

Nodes = list[NDArray[np.int64]]


def attributed_networks(
    files: dict[str, Path], *, networks: dict[str, str], label: str, most: int = 0, ego: dict[str, Any] | None = None
) -> pa.Table:
    """Networks in MATLAB files: matrices of edges, of attributes of nodes, and of their groups (Shen et al. 2020).

    A row for each node of the networks, in the order of `networks` (from NAME of NAME.mat to the value of the field
    `network`) and of the nodes.

    Fields: `features`, the node's attributes as words ("f17"); `neighbours`, the `most` attributes that are most common
    among its neighbours, most common first; `degree`; `label`, its groups (0 or 1 for each); `network`. With `ego`, see
    `format_ego_networks`, `graph` instead of `neighbours`, and only nodes of one group, whose index is the `label`.
    """
    from scipy.sparse import lil_array

    tables = []
    for name, title in networks.items():
        matrices = load_matlab(files[f"{name}.mat"])
        # Never dense: a file of a megabyte has matrices of gigabytes.
        edges, has, groups = (lil_array(matrices[name]) for name in ("network", "attrb", "group"))
        nodes = has.shape[0]
        near = list_neighbours(np.stack(edges.nonzero(), axis=1), nodes)
        groups = groups.toarray() > 0
        labels = groups.argmax(axis=1) if ego else to_tensor_column(groups.astype(np.float32))
        columns = {label: labels, "network": [title] * nodes}
        table = _make_node_table(list(has.rows), near, most, columns, ego and {**ego, "name": name})
        tables.append(table.filter(groups.sum(axis=1) == 1) if ego else table)
    return pa.concat_tables(tables)


def musae(
    files: dict[str, Path], *, networks: dict[str, str], target: str, most: int = 0, ego: dict[str, Any] | None = None
) -> pa.Table:
    """Networks of MUSAE (Rozemberczki, Allen and Sarkar 2021), each with edges, features of nodes, and targets.

    A row for each node of the networks, in the order of `networks` (from a name to the value of the field `network`)
    and of the nodes' numbers. The files of the network DE are DE_edges.csv (from, to), DE.json (the features of each
    node) and DE_target.csv (new_id and the column `target`, True or False).

    Fields: `features`, the node's features as words ("f17"); `neighbours`, the `most` features that are most common
    among its neighbours, most common first; `degree`; `target` (1 for True); `network`. With `ego`, see
    `format_ego_networks`, `graph` instead of `neighbours`.
    """
    tables = []
    for name, title in networks.items():
        own = {int(node): sorted(known) for node, known in read_json(files[f"{name}.json"]).items()}
        targets = {int(row["new_id"]): row[target] == "True" for row in _iterate_rows(files[f"{name}_target.csv"])}
        edges = [(int(row["from"]), int(row["to"])) for row in _iterate_rows(files[f"{name}_edges.csv"])]
        near = list_neighbours(np.array(edges, np.int64).reshape(-1, 2), len(own))
        values = np.array([targets[node] for node in range(len(own))], np.int64)
        features = [own[node] for node in range(len(own))]
        columns = {target: values, "network": [title] * len(own)}
        tables.append(_make_node_table(features, near, most, columns, ego and {**ego, "name": name}))
    return pa.concat_tables(tables)


def _iterate_rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _make_node_table(
    features: list[list[int]], near: Nodes, most: int, columns: dict[str, Any], ego: dict[str, Any] | None
) -> pa.Table:
    around = format_ego_networks(near, features, **ego) if ego else list_common_features(near, features, most)
    return pa.table(
        {
            "features": [" ".join(f"f{feature}" for feature in own) for own in features],
            "graph" if ego else "neighbours": pa.array(around, pa.string()),
            "degree": count_degrees(near),
            **columns,
        }
    )


def format_ego_networks(
    near: Nodes, features: list[list[int]], *, neighbours: int, features_each: int, seed: str, name: str
) -> list[str]:
    """The graph (`loaders/batching/graphs.py`) of each node, its neighbours, and the edges among them; the node is the
    graph's first, and a node's labels are its features.

    Of more than `neighbours` neighbours that many are drawn, and of more than `features_each` features that many of a
    node, the same in every graph. A node's draws are those of its number in the stream of `seed` and the network's
    `name`."""
    known = [_draw_some(own, features_each, f"{seed}/{name}/features/{node}") for node, own in enumerate(features)]
    edges = {(node, other) for node, own in enumerate(near) for other in own.tolist()}
    graphs = []
    for node, own in enumerate(near):
        members = [node, *_draw_some(own.tolist(), neighbours, f"{seed}/{name}/neighbours/{node}")]
        pairs = combinations(enumerate(members), 2)
        ends = [(first, second) for (first, a), (second, b) in pairs if (a, b) in edges]
        graphs.append(format_graph([known[member] for member in members], ends))
    return graphs


def _draw_some(items: list[int], most: int, stream: str) -> list[int]:
    if len(items) <= most:
        return items
    order = draw_permutation(stream, np.arange(len(items), dtype=np.uint64))
    return [items[index] for index in sorted(order[:most].tolist())]


def edge_lists(files: dict[str, Path], *, graphs: dict[str, list[str]], field: str, label: str) -> pa.Table:
    """Graphs given as lists of edges and of node labels, with structural features of each node.

    A row for each node of the graphs, in the order of `graphs` (`{name: [file of edges, file of labels]}`) and of the
    nodes' numbers. A line of edges has two nodes; a line of labels, after a header, has a node and its label.

    Fields (float64), for the undirected graph: `degree`; `neighbour_degree_mean`, `neighbour_degree_max` and
    `neighbour_degree_min`; `within_two`, the nodes at most two steps away; `triangles`; `clustering`, the share of
    pairs of neighbours that are adjacent; `share`, the degree divided by the number of other nodes. Also `label`, and
    `field`, the graph's name.
    """
    tables = []
    for name, (edges, labels) in graphs.items():
        known = dict(np.loadtxt(files[labels], np.int64, skiprows=1, ndmin=2).tolist())
        index_of = {node: at for at, node in enumerate(sorted(known))}
        ends = [(index_of[a], index_of[b]) for a, b in np.loadtxt(files[edges], np.int64, ndmin=2).tolist()]
        near = list_neighbours(np.array(ends, np.int64).reshape(-1, 2), len(index_of))
        fields = _compute_structure(near) | {label: np.array([known[node] for node in index_of], np.int64)}
        tables.append(pa.table(fields | {field: [name] * len(index_of)}))
    return pa.concat_tables(tables)


def labelled_graphs(files: dict[str, Path], *, classes: list[int]) -> pa.Table:
    """A set of graphs with node labels, in the text format of Xu et al. 2019 (weihua916/powerful-gnns on GitHub).

    A row for each graph of the only file, in its order. The first line has the number of graphs. A graph is a line with
    its number of nodes and its class, and a line for each node: its label, its number of neighbours, and these.

    Fields: `graph`, as `loaders/batching/graphs.py` writes it; `nodes` and `edges`, their numbers; `label`, the index
    of the class in `classes`. An edge that one of its ends does not list is one all the same.
    """
    (path,) = files.values()
    (count,), *lines = (list(map(int, line.split())) for line in path.read_text("utf-8").splitlines())
    graphs, sizes, labels, at = [], [], [], 0
    for _ in range(count):
        nodes, label = lines[at]
        own = lines[at + 1 : at + 1 + nodes]
        at += 1 + nodes
        pairs = [(node, other) for node, row in enumerate(own) for other in row[2 : 2 + row[1]]]
        graphs.append(format_graph([row[:1] for row in own], pairs))
        sizes.append(nodes)
        labels.append(classes.index(label))
    edges = np.array([graph.count("-") for graph in graphs], np.int64)
    return pa.table({"graph": graphs, "nodes": np.array(sizes), "edges": edges, "label": np.array(labels)})


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


def list_neighbours(edges: NDArray[np.int64], nodes: int) -> Nodes:
    """Return the neighbours of each node in ascending order, each once and without the node itself; `edges`, of shape
    (n, 2), are undirected."""
    both = np.concatenate([edges, edges[:, ::-1]])
    both = np.unique(both[both[:, 0] != both[:, 1]], axis=0)
    ends = np.searchsorted(both[:, 0], np.arange(nodes + 1))
    return [both[start:end, 1] for start, end in pairwise(ends.tolist())]


def count_degrees(of: Nodes) -> NDArray[np.float64]:
    return np.array([len(adjacent) for adjacent in of], np.float64)


def list_common_features(of: Nodes, features: list[list[int]], most: int) -> list[str]:
    """List for each node the `most` features that are most common among its neighbours, as words such as "f17": the
    most common first, ties by the lower number."""
    texts = []
    for near in of:
        counts = Counter(feature for node in near.tolist() for feature in features[node])
        chosen = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
        texts.append(" ".join(f"f{feature}" for feature, _ in chosen))
    return texts
