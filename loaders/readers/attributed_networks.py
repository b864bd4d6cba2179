"""Networks in MATLAB files: matrices of edges, of attributes of nodes, and of their groups (Shen et al. 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadData
from ._graph import count_degrees, list_common_features, list_neighbours
from ._matlab import read_matlab
from ._tensors import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path], *, networks: dict[str, str], label: str, most: int) -> pa.Table:
    """A row for each node of the networks, in the order of `networks` (from NAME of NAME.mat to the value of the field
    `network`) and of the nodes.

    Fields: `features`, the node's attributes as words ("f17"); `neighbours`, the `most` attributes that are most common
    among its neighbours, most common first; `degree`; `label`, its groups (0 or 1 for each); `network`.
    Raises `BadData` if the matrices differ in their number of nodes.
    """
    import pyarrow as pa

    return pa.concat_tables([_make_network_table(files, name, title, label, most) for name, title in networks.items()])


def _make_network_table(files: dict[str, Path], name: str, title: str, label: str, most: int) -> pa.Table:
    import pyarrow as pa

    where = f"{name}.mat"
    try:
        matrices = read_matlab(files[where])
        edges, has, groups = matrices["network"], matrices["attrb"], matrices["group"]
    except (KeyError, ValueError) as error:
        raise BadData(f"{where}: not the matrices network, attrb and group: {error}") from error
    if edges.shape != (len(has), len(has)) or len(groups) != len(has):
        raise BadData(f"{where}: {edges.shape} edges, {len(has)} nodes with attributes and {len(groups)} with groups")
    features = [np.flatnonzero(own).tolist() for own in has]
    near = list_neighbours(np.argwhere(edges), len(has), where)
    return pa.table(
        {
            "features": [" ".join(f"f{feature}" for feature in own) for own in features],
            "neighbours": pa.array(list_common_features(near, features, most, "f"), pa.string()),
            "degree": count_degrees(near),
            label: to_tensor_column((groups > 0).astype(np.float32)),
            "network": [title] * len(has),
        }
    )
