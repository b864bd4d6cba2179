"""A node's neighbourhood as a graph: the node, its neighbours, and what is between them."""

import numpy as np
from farshift.loaders.batching.graphs import NO_LABEL, parse_graph
from farshift.loaders.readers.networks import format_ego_networks, list_neighbours
from hypothesis import given
from hypothesis import strategies as st

NODES = 9
edge_sets = st.sets(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=30)


def read(edges, neighbours, features_each=2, features=None):
    near = list_neighbours(np.array(sorted(edges), np.int64).reshape(-1, 2), NODES)
    features = features or [[node] for node in range(NODES)]
    return format_ego_networks(
        near, features, neighbours=neighbours, features_each=features_each, seed="test", name="n"
    )


@given(edges=edge_sets, most=st.integers(1, NODES))
def test_a_graph_is_a_node_its_neighbours_and_every_edge_among_them(edges, most):
    """Each node's feature is its own number, so that the graph says which nodes it has."""
    linked = {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    for node, text in enumerate(read(edges, most)):
        labels, ends = parse_graph(text)
        first, *others = labels[:, 0].tolist()
        around = {other for other in range(NODES) if frozenset((node, other)) in linked}
        assert first == node
        assert set(others) <= around
        assert len(set(others)) == len(others) == min(most, len(around))
        members = [first, *others]
        among = {edge for edge in linked if edge <= set(members)}
        assert {frozenset((members[a], members[b])) for a, b in ends.tolist()} == among


def test_each_neighbour_and_each_feature_is_drawn_as_often_as_the_others():
    star = {(0, other) for other in range(1, NODES)}
    near = list_neighbours(np.array(sorted(star)), NODES)
    neighbours, features = np.zeros(NODES), np.zeros(4)
    for seed in range(400):
        options = {"neighbours": 2, "features_each": 1, "seed": str(seed), "name": "n"}
        own = parse_graph(format_ego_networks(near, [[node] for node in range(NODES)], **options)[0])[0]
        neighbours[own[1:, 0]] += 1
        several = parse_graph(format_ego_networks(near, [[0, 1, 2, 3]] * NODES, **options)[1])[0]
        features[several[0, 0]] += 1
    assert abs(neighbours[1:] - 100).max() < 40  # 4.6 standard deviations
    assert abs(features - 100).max() < 40


def test_a_node_has_the_same_drawn_features_in_every_graph():
    words = [list(range(10 * node, 10 * node + 5)) for node in range(NODES)]
    graphs = read({(0, 1), (1, 2)}, NODES, features=words)
    own = {tuple(parse_graph(graphs[node])[0][0]) for node in (0, 1, 2)}
    seen = {tuple(row) for row in parse_graph(graphs[1])[0]}
    assert own == seen
    assert all(NO_LABEL not in row for row in seen)
