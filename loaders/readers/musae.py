"""Networks of MUSAE (Rozemberczki, Allen and Sarkar 2021), each with edges, features of nodes, and targets."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ...core.errors import BadData
from ._graph import count_degrees, list_common_features, list_neighbours

if TYPE_CHECKING:
    from collections.abc import Iterable


def read(files: dict[str, Path], *, networks: dict[str, str], target: str, most: int) -> pa.Table:
    """A row for each node of the networks, in the order of `networks` (from a name to the value of the field `network`)
    and of the nodes' numbers. The files of the network DE are DE_edges.csv (from, to), DE.json (the features of each
    node) and DE_target.csv (new_id and the column `target`, True or False).

    Fields: `features`, the node's features as words ("f17"); `neighbours`, the `most` features that are most common
    among its neighbours, most common first; `degree`; `target` (1 for True); `network`. A node may be listed twice only
    with the same target. Raises `BadData` if the files differ in their nodes.
    """
    tables = [_make_network_table(files, name, title, target, most) for name, title in networks.items()]
    return pa.concat_tables(tables)


def _make_network_table(files: dict[str, Path], name: str, title: str, target: str, most: int) -> pa.Table:
    try:
        own = {
            int(node): sorted(node_features)
            for node, node_features in json.loads(files[f"{name}.json"].read_text("utf-8")).items()
        }
        targets = dict(_iterate_targets(_read_table(files[f"{name}_target.csv"]), target, f"{name}_target.csv"))
        edges = [(int(row["from"]), int(row["to"])) for row in _read_table(files[f"{name}_edges.csv"])]
    except (KeyError, ValueError) as error:
        raise BadData(f"{name}: not the edges, features and targets of a network: {error}") from error
    if set(own) != set(range(len(own))) or set(targets) != set(own):
        raise BadData(f"{name}: {len(own)} nodes have features but {len(targets)} have a target: they must be the same")
    features = [own[node] for node in range(len(own))]
    near = list_neighbours(np.array(edges, np.int64).reshape(-1, 2), len(own), f"{name}_edges.csv")
    return pa.table(
        {
            "features": [" ".join(f"f{feature}" for feature in node_features) for node_features in features],
            "neighbours": pa.array(list_common_features(near, features, most, "f"), pa.string()),
            "degree": count_degrees(near),
            target: np.array([targets[node] for node in range(len(own))], np.int64),
            "network": [title] * len(own),
        }
    )


def _read_table(path: Path) -> Iterable[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _iterate_targets(rows: Iterable[dict[str, str]], target: str, where: str) -> Iterable[tuple[int, int]]:
    seen: dict[int, int] = {}
    for row in rows:
        node, value = int(row["new_id"]), {"True": 1, "False": 0}[row[target]]
        if seen.setdefault(node, value) != value:
            raise BadData(f"{where}: node {node} has two values of {target}")
        yield node, value
