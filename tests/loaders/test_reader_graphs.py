"""Graphs become tables of nodes: their own features, and what their neighbours and their place are like."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers.networks import edge_lists, labelled_graphs, musae

SMALL = {
    "XX_edges.csv": "from,to\n0,1\n2,0\n",
    "XX.json": json.dumps({"0": [3], "1": [9, 5], "2": [5]}),
    "XX_target.csv": "id,mature,new_id\n70,True,2\n71,False,0\n72,False,1\n70,True,2\n",
}


def some(tmp_path, texts):
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def network(tmp_path, most=2, **changes):
    texts = SMALL | {name.replace("XX", "XX."): text for name, text in changes.items()}
    return musae(some(tmp_path, texts), networks={"XX": "Elvish"}, target="mature", most=most)


def test_a_node_has_its_features_and_the_commonest_of_its_neighbours(tmp_path):
    assert network(tmp_path).to_pydict() == {
        "features": ["f3", "f5 f9", "f5"],
        "neighbours": ["f5 f9", "f3", "f3"],
        "degree": [2.0, 1.0, 1.0],
        "mature": [0, 0, 1],
        "network": ["Elvish"] * 3,
    }
    assert network(tmp_path, most=1)["neighbours"].to_pylist() == ["f5", "f3", "f3"]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("XX_target.csv", SMALL["XX_target.csv"] + "73,True,1\n", "node 1 has two values of mature"),
        ("XX_target.csv", "id,mature,new_id\n70,True,2\n", "XX: 3 nodes have features but 1 have a target"),
        ("XX_edges.csv", "from,to\n0,7\n", r"XX_edges\.csv: an edge to node 7, but the nodes are 0 to 2"),
        ("XX_edges.csv", "a,b\n0,7\n", "XX: not the edges, features and targets"),
        ("XX.json", "[", "XX: not the edges, features and targets"),
    ],
)
def test_files_that_do_not_agree_are_refused(tmp_path, name, text, complaint):
    files = some(tmp_path, SMALL | {name: text})
    with pytest.raises(BadData, match=complaint):
        musae(files, networks={"XX": "Elvish"}, target="mature", most=2)


EDGES = [(10, 11), (11, 12), (12, 10), (12, 13), (13, 12), (13, 13), (13, 14)]
GRAPHS = {"Gondor": ["gondor.edgelist", "labels.txt"]}


def flights(tmp_path, edges=EDGES, nodes=range(10, 16)):
    texts = {
        "gondor.edgelist": "".join(f"{a} {b}\n" for a, b in edges),
        "labels.txt": "node label\n" + "".join(f"{node} {node % 4}\n" for node in nodes),
    }
    return edge_lists(some(tmp_path, texts), graphs=GRAPHS, field="network", label="activity")


def test_the_place_of_a_node_is_what_brute_force_finds(tmp_path):
    result = flights(tmp_path).to_pydict()
    nodes = list(range(10, 16))
    near = {node: {b for edge in EDGES for a, b in (edge, edge[::-1]) if a == node and b != node} for node in nodes}
    degree = [len(near[node]) for node in nodes]
    assert result["degree"] == degree == [2, 2, 3, 2, 1, 0]
    assert result["neighbour_degree_max"] == [
        max((len(near[item]) for item in near[node]), default=0) for node in nodes
    ]
    assert result["neighbour_degree_min"] == [
        min((len(near[item]) for item in near[node]), default=0) for node in nodes
    ]
    assert result["neighbour_degree_mean"][2] == pytest.approx(2)
    pairs = [sum(b in near[a] for a, b in combinations(near[node], 2)) for node in nodes]
    assert result["triangles"] == pairs
    assert result["clustering"] == [1, 1, pytest.approx(1 / 3), 0, 0, 0]
    two = [len({*near[node], *(far for item in near[node] for far in near[item])} - {node}) for node in nodes]
    assert result["within_two"] == two
    assert result["share"][0] == 2 / 5
    assert result["activity"] == [node % 4 for node in nodes]
    assert set(result["network"]) == {"Gondor"}


def test_an_edge_of_an_unlabelled_node_and_a_line_of_words_are_refused(tmp_path):
    with pytest.raises(BadData, match=r"gondor\.edgelist: node 13 has no label in labels\.txt"):
        flights(tmp_path, nodes=range(10, 13))
    files = some(tmp_path, {"gondor.edgelist": "10 eleven\n", "labels.txt": "node label\n10 1\n"})
    with pytest.raises(BadData, match=r"gondor\.edgelist, line 1: '10 eleven' is not two whole numbers"):
        edge_lists(files, graphs=GRAPHS, field="network", label="activity")


SET = "2\n3 2\n0 2 1 2\n4 0\n1 1 0\n1 0\n7 0\n"


def test_a_set_of_graphs_is_a_row_each(tmp_path):
    result = labelled_graphs(some(tmp_path, {"SET.txt": SET}), classes=[0, 2]).to_pydict()
    # The second node lists no neighbour, but the first lists it.
    assert result == {"graph": ["0 4 1;0-1 0-2", "7;"], "nodes": [3, 1], "edges": [2, 0], "label": [1, 0]}


@pytest.mark.parametrize("text", [SET[:-4], SET.replace("3 2", "3 1"), SET.replace("2 1 2", "2 1 5"), "x\n"])
def test_a_set_of_graphs_in_another_format_is_refused(tmp_path, text):
    with pytest.raises(BadData, match=r"SET\.txt: graph \d is not in the format|is no graph"):
        labelled_graphs(some(tmp_path, {"SET.txt": text}), classes=[0, 2])
