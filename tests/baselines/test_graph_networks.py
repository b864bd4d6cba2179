"""Graphs as texts become node ids and edges; GIN and GCN are what their equations say, for each replica."""

from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.compatibility import find_networks_for
from farshift.baselines.encoding.encoding import PAD, SETTINGS, Sizes
from farshift.baselines.encoding.token_ids import choose_encoding
from farshift.baselines.networks import gcn, gin
from farshift.benchmarks.model import Task
from farshift.core.errors import BadData, ModelError
from farshift.loaders.batching.graphs import NO_LABEL, format_graph, parse_graph
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from .side_by_side import agrees, built

TASK = Task("classification", ("graph",), "label", classes=2)
TEXTS = np.array(["6 6 8;0-1 1-2", "8;", "7 6,8 6 .;0-1 0-2 0-3 2-3"], object)
TRAIN = {"graph": TEXTS, "label": np.array([0, 1, 1])}
SMALL: dict[str, Any] = {"width": 5, "depth": 3, "dropout": 0.0, "readout": "graph"}
NETWORKS = {"gin": gin, "gcn": gcn}


def encode(texts: Any) -> tuple[Sizes, Tensor, Tensor]:
    coding = choose_encoding(TASK, TRAIN, SETTINGS | {"inputs": "graphs"})
    nodes, edges = coding.inputs({"graph": np.array(texts, object)})
    return coding.sizes, nodes, torch.as_tensor(edges)


def both(name: str, texts: Any, replicas: int = 2, **settings: Any) -> tuple[Any, Tensor, Tensor]:
    sizes, nodes, edges = encode(texts)
    network = built(lambda: NETWORKS[name].Network(sizes, SMALL | settings), replicas)
    return network, nodes.expand(replicas, *nodes.shape), edges.expand(replicas, *edges.shape)


graphs = st.integers(1, 7).flatmap(
    lambda size: st.tuples(
        st.lists(st.lists(st.sampled_from([6, 7, 8]), max_size=3), min_size=size, max_size=size),
        st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=12),
        st.permutations(range(size)),
    )
)


@given(graph=graphs)
def test_a_graph_is_read_as_it_was_written(graph: Any) -> None:
    labels, edges, _ = graph
    read, ends = parse_graph(format_graph(labels, edges))
    assert [[label for label in own if label != NO_LABEL] for own in read.tolist()] == labels
    assert {frozenset(edge) for edge in ends.tolist()} == {frozenset(edge) for edge in edges if edge[0] != edge[1]}


@pytest.mark.parametrize("text", ["", "a b", "6,,6;", "6,.;", "6 6;0-2", "6 6;0", "6;0-1-0", ";0-0", "6 6;-1-0"])
def test_a_text_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(BadData, match="is no graph"):
        parse_graph(text)


def test_ids_are_of_training_labels_and_padding_adds_no_edge() -> None:
    sizes, nodes, edges = encode(["8;", "99 7;0-1", ". 6,7;"])
    assert nodes.tolist() == [[[4, PAD], [PAD, PAD]], [[1, PAD], [3, PAD]], [[1, PAD], [2, 3]]]
    assert edges.tolist() == [[[0, 0]], [[0, 1]], [[0, 0]]]
    assert sizes.source == 5


def brute_force(name: str, network: Any, replica: int, text: str, readout: str) -> np.ndarray:
    """The logits of one graph, node by node over lists of neighbours."""
    w = {key: value[replica].detach().numpy() for key, value in network.state_dict().items()}
    labels, edges = parse_graph(text)
    near: list[list[int]] = [[] for _ in labels]
    for a, b in edges.tolist():
        near[a].append(b)
        near[b].append(a)
    ids = {NO_LABEL: 1, 6: 2, 7: 3, 8: 4}
    known = [[label for label in own if label != NO_LABEL] or [NO_LABEL] for own in labels.tolist()]
    h = [np.mean([w["read.weight"][ids[label]] for label in own], axis=0) for own in known]
    whole = readout == "graph"
    if name == "gin":
        sums = [sum(h) if whole else h[0]]
        for layer in range(3):
            z = [(1 + w["epsilon"][layer]) * h[v] + sum((h[u] for u in near[v]), np.zeros(5)) for v in range(len(h))]
            z = [w[f"first.{layer}.weight"] @ x + w[f"first.{layer}.bias"] for x in z]
            z = [(x - x.mean()) / np.sqrt(x.var() + 1e-5) for x in z]
            z = [np.maximum(0, w[f"norms.{layer}.weight"] * x + w[f"norms.{layer}.bias"]) for x in z]
            h = [np.maximum(0, w[f"second.{layer}.weight"] @ x + w[f"second.{layer}.bias"]) for x in z]
            sums.append(sum(h) if whole else h[0])
        features = np.concatenate(sums)
    else:
        degree = [1 + len(own) for own in near]
        for layer in range(3):
            z = h if layer == 0 else [w[f"layers.{layer - 1}.weight"] @ x for x in h]
            h = [
                np.maximum(0, sum(z[u] / np.sqrt(degree[u] * degree[v]) for u in [v, *near[v]])) for v in range(len(h))
            ]
        features = sum(h) / len(h) if whole else h[0]
    return np.asarray(w["head.weight"] @ features + w["head.bias"])


@pytest.mark.parametrize("readout", ["graph", "node"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_graph_network_is_its_papers_equation_node_by_node(name: str, readout: str) -> None:
    network, nodes, edges = both(name, TEXTS, readout=readout)
    if name == "gin":
        torch.nn.init.uniform_(network.epsilon)
    logits = network(nodes, edges).detach().numpy()
    for replica in range(2):
        for row, text in enumerate(TEXTS):
            assert np.allclose(
                logits[replica, row], brute_force(name, network, replica, text, readout), rtol=0, atol=1e-10
            )
    assert agrees(network, nodes, edges)


@pytest.mark.parametrize("name", NETWORKS)
@given(graph=graphs)
def test_no_order_of_nodes_or_edges_changes_the_logits(name: str, graph: Any) -> None:
    labels, edges, order = graph
    moved = [labels[order.index(node)] for node in range(len(labels))]
    swapped = {(order[b], order[a]) for a, b in edges}
    network, nodes, ends = both(name, [format_graph(labels, edges), format_graph(moved, swapped), TEXTS[2]])
    logits = network(nodes, ends)
    assert torch.allclose(logits[:, 0], logits[:, 1], rtol=0, atol=1e-10)


def test_gin_tells_two_graphs_of_other_counts_apart_which_gcn_does_not() -> None:
    """One ring of four alike nodes and two: the mean over nodes is the same, the sum is not."""
    one, two = "6 6 6 6;0-1 1-2 2-3 0-3", "6 6 6 6 6 6 6 6;0-1 1-2 2-3 0-3 4-5 5-6 6-7 4-7"
    gaps = {}
    for name in NETWORKS:
        network, nodes, edges = both(name, [one, two])
        first, second = network(nodes, edges).unbind(1)
        gaps[name] = (first - second).abs().min().item()
    assert gaps["gcn"] < 1e-12
    assert gaps["gin"] > 1e-3


def test_graph_networks_read_graphs_only_and_are_not_named_for_other_inputs() -> None:
    assert not {"gin", "gcn"} & {*find_networks_for(TASK)}
    with pytest.raises(ModelError, match="use graph or node"):
        both("gcn", TEXTS, readout="first")
    with pytest.raises(ModelError, match="needs one input, a graph"):
        choose_encoding(TASK, TRAIN | {"graph": np.arange(3)}, SETTINGS | {"inputs": "graphs"})
