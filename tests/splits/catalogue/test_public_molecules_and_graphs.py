"""Molecules, reviews, proteins and networks: each source's own definition read from small files in the published
layouts."""

from __future__ import annotations

import io
import json
import tracemalloc

import numpy as np
import pytest
from farshift.core.errors import BadData
from published_layouts import check_layout, read_small
from scipy import io as io_
from scipy import sparse


def matlab(**matrices) -> bytes:
    """A .mat file of version 5, the network sparse as published."""
    buffer = io.BytesIO()
    io_.savemat(buffer, matrices | {"network": sparse.csc_matrix(matrices["network"])}, do_compression=True)
    return buffer.getvalue()


FLIGHTS = {"edgelist": "1 2\n2 3\n", "labels": "node label\n1 0\n2 3\n3 1\n"}
TWITCH = {"_edges.csv": "from,to\n0,1\n", ".json": json.dumps({"0": [1], "1": []}), "_target.csv": "id,days,mature,views,partner,new_id\n7,1,True,9,False,1\n8,1,False,9,False,0\n"}  # fmt: skip
LAYOUTS = {
    "citations": (
        {f"{name}.mat": matlab(network=np.array([[0, 1.0], [1.0, 0]]), attrb=np.array([[0, 2, 1], [0, 0, 0]], np.uint8), group=np.array([[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]], np.uint8)) for name in ("acmv9", "citationv1", "dblpv7")},
        {"features": ["f1 f2", ""] * 3, "neighbours": ["", "f1 f2"] * 3, "subjects": [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0]] * 3, "degree": [1, 1] * 3},
    ),
    "airports": (
        {name: FLIGHTS[sort] for position in ("brazil", "europe", "usa") for name, sort in ((f"{position}-airports.edgelist", "edgelist"), (f"labels-{position}-airports.txt", "labels"))},
        {"activity": [0, 3, 1] * 3, "degree": [1, 2, 1] * 3, "network": ["Brazil"] * 3 + ["Europe"] * 3 + ["United States"] * 3},
    ),
    "twitch": (
        {language + end: text for language in ("DE", "ENGB", "ES", "FR", "PTBR", "RU", "ZHTW") for end, text in TWITCH.items()},
        {"mature": [0, 1] * 7, "features": ["f1", ""] * 7, "neighbours": ["", "f1"] * 7},
    ),
    "bbbp": ({"bbbp.csv": "smiles,p_np\nCCO,1\nC,0\n"}, {"smiles": ["CCO", "C"], "penetrates": [1, 0]}),
    "bace": ({"bace.csv": "mol,Class\nCCO,1\nC,0\n"}, {"smiles": ["CCO", "C"], "inhibits": [1, 0]}),
    "clintox": ({"clintox.csv": "smiles,FDA_APPROVED,CT_TOX\nCCO,1,0\nC,0,1\n"}, {"smiles": ["CCO", "C"], "toxic": [0, 1]}),
    "tox21_ahr": ({"tox21.csv": "smiles,NR-AR,NR-AhR\nCCO,1,\nC,,1\n"}, {"smiles": ["C"], "active": [1]}),
    "tox21_mmp": ({"tox21.csv": "smiles,SR-MMP\nCCO,0\nC,\n"}, {"smiles": ["CCO"], "active": [0]}),
    "sider_hepatobiliary": ({"sider.csv": 'smiles,Hepatobiliary disorders,"Neoplasms benign, malignant"\nCCO,1,0\n'}, {"adverse": [1]}),
    "esol": ({"delaney.csv": "smiles,logp\nCCO,-0.77\n"}, {"log_solubility": [-0.77]}),
    "freesolv": ({"freesolv.csv": "smiles,freesolv\nCCO,-11.01\n"}, {"hydration_energy": [-11.01]}),
    "lipophilicity": ({"lipo.csv": "smiles,lipo\nCCO,3.54\n"}, {"log_d": [3.54]}),
    "amazon_sentiment": (
        {f"{kind}_{part}.svmlight": "1 0:2 9:1\n-1 3:1\n" for kind in ("books", "dvd", "electronics", "kitchen") for part in ("train", "test")},
        {"positive": [1, 0] * 8, "terms": ["t0 t0 t9", "t3"] * 8},
    ),
}  # fmt: skip
"""By source: files in its published layout, and some of the fields that they give."""


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_the_published_layout_gives_the_fields_of_the_source(name, tmp_path):
    check_layout(name, LAYOUTS[name], tmp_path)


def test_a_molecule_of_neither_class_is_refused(tmp_path):
    with pytest.raises(BadData, match="2"):
        read_small("bbbp", {"bbbp.csv": "smiles,p_np\nCCO,2\n"}, tmp_path)


def test_a_network_whose_matrices_have_other_nodes_is_refused(tmp_path):
    files, _ = LAYOUTS["citations"]
    fewer = matlab(network=np.eye(2), attrb=np.ones((3, 3)), group=np.ones((3, 5)))
    with pytest.raises(BadData, match="dblpv7.mat: .* 3 nodes with attributes"):
        read_small("citations", files | {"dblpv7.mat": fewer}, tmp_path)


def test_a_sparse_network_is_not_spread_out_in_memory(tmp_path):
    nodes = 2_000
    network = sparse.eye(nodes, format="csc")
    sparse_one = matlab(network=network, attrb=network, group=np.ones((nodes, 5)))
    tracemalloc.start()
    try:
        rows = read_small("citations", dict.fromkeys(LAYOUTS["citations"][0], sparse_one), tmp_path)
        assert tracemalloc.get_traced_memory()[1] < nodes * nodes * 8 / 2
    finally:
        tracemalloc.stop()
    assert rows.num_rows == 3 * nodes
