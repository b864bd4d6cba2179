"""Networks of sets know no order, message passing goes along the edges of its graph and no further."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
import torch
from farshift.baselines.encoding.encoding import PAD, Sizes
from farshift.baselines.networks import deep_sets, message_passing
from farshift.core.errors import ModelError
from torch import Tensor

from .side_by_side import agrees, built, trained

TOKENS = Sizes(7, (7, 6, 7))
POINTS = Sizes(3, numbers=8, shape=(4, 2))
SCALARS = Sizes(3, numbers=5)
NARROW = deep_sets.SETTINGS | {"width": 9}
WORDS = Sizes(8, source=9, aligned=True)


def elements(sizes: Sizes, replicas: int, rows: int = 6) -> tuple[Tensor, Tensor]:
    """Categories (K, n, fields) and numbers (K, n, width), as the sizes say."""
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(0, min(sizes.categories, default=1), (replicas, rows, len(sizes.categories)), generator=draw)
    return ids, torch.randn(replicas, rows, sizes.numbers, generator=draw, dtype=torch.float64)


@pytest.mark.parametrize("sizes", [TOKENS, POINTS, SCALARS], ids=["tokens", "points", "scalars"])
def test_no_order_of_a_sets_elements_changes_what_deep_sets_sees(sizes: Sizes) -> None:
    network = built(lambda: deep_sets.Network(sizes, NARROW), 2)
    ids, numbers = elements(sizes, 2)
    expected = network(ids, numbers)
    count = ids.shape[2] or (sizes.shape or (sizes.numbers,))[0]
    for order in list(permutations(range(count)))[1:]:
        moved = numbers.view(2, 6, count, -1)[:, :, list(order)].flatten(2) if sizes.numbers else numbers
        swapped = ids[:, :, list(order)] if sizes.categories else ids
        assert torch.allclose(network(swapped, moved), expected, rtol=0, atol=1e-12)
    assert agrees(network, ids, numbers)


def test_another_multiset_of_the_same_elements_is_another_set() -> None:
    network = built(lambda: deep_sets.Network(TOKENS, NARROW), 1)
    ids = torch.tensor([[[1, 1, 2], [1, 2, 2]]])
    first, second = network(ids, torch.zeros(1, 2, 0, dtype=torch.float64))[0]
    assert (first - second).abs().max() > 1e-3


def test_deep_sets_is_rho_of_the_sum_of_phi() -> None:
    network = built(lambda: deep_sets.Network(POINTS, NARROW), 2)
    ids, numbers = elements(POINTS, 2)
    for position in range(2):

        def through(layers: Any, x: Tensor, place: int = position) -> Tensor:
            for layer in layers:
                x = torch.relu(x @ layer.weight[place].T + layer.bias[place])
            return x

        embedded = [through(network.phi, numbers[position, :, start : start + 2]) for start in range(0, 8, 2)]
        features = through(network.rho, torch.stack(embedded).sum(dim=0))
        expected = features @ network.head.weight[position].T + network.head.bias[position]
        assert torch.allclose(network(ids, numbers)[position], expected, rtol=0, atol=1e-12)


def test_what_is_no_set_is_refused() -> None:
    for other in (Sizes(2, (3, 3), 2), Sizes(2)):
        with pytest.raises(ModelError, match="categories alone or numbers alone"):
            deep_sets.Network(other, NARROW)
    with pytest.raises(ModelError, match="depth = 0"):
        deep_sets.Network(POINTS, NARROW | {"depth": 0})


def test_deep_sets_learns_the_table_of_a_symmetric_operation_from_one_half() -> None:
    a, b = torch.triu_indices(8, 8)
    half, other = torch.stack([a, b], dim=-1)[None], torch.stack([b, a], dim=-1)[None]
    empty = torch.zeros(1, len(a), 0, dtype=torch.float64)
    network = built(lambda: deep_sets.Network(Sizes(8, (8, 8)), deep_sets.SETTINGS | {"width": 48}), 1)
    target = ((a + b) % 8)[None]
    trained(network, (half, empty), target, ["a"], 150)
    assert torch.equal(network(other, empty).argmax(dim=-1), target)


def messages(graph: str, replicas: int = 2, rounds: int = 0) -> Any:
    return built(lambda: message_passing.Network(WORDS, {"width": 6, "graph": graph, "rounds": rounds}), replicas)


def tokens(rows: list[list[int]], replicas: int = 2) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[row + [PAD] * (longest - len(row)) for row in rows]]).expand(replicas, -1, -1)


def by_loops(network: Any, place: int, ids: list[int], graph: str, rounds: int) -> Tensor:
    """The states of one row's nodes, (S, width), node by node and edge by edge."""

    def affine(layer: Any, x: Tensor) -> Tensor:
        out = layer.weight[place] @ x
        return out if layer.bias is None else out + layer.bias[place]

    first = [network.read.weight[place][token] for token in ids]
    states = first
    for _ in range(rounds):
        after = []
        for v, state in enumerate(states):
            total, neighbours = torch.zeros_like(state), 0
            for w, other in enumerate(states):
                if w != v and (graph == "full" or abs(v - w) == 1):
                    own = affine(network.speak, state)[:6]
                    share = affine(network.speak, other)[6:12] if w < v else affine(network.speak, other)[12:]
                    total, neighbours = total + torch.relu(own + share), neighbours + 1
            message = total / max(1, neighbours) if graph == "full" else total
            heard = affine(network.hear, message) + affine(network.recall, first[v])
            stored = affine(network.remember, state)
            reset, keep = torch.sigmoid(heard[:6] + stored[:6]), torch.sigmoid(heard[6:12] + stored[6:12])
            fresh = torch.tanh(heard[12:] + reset * stored[12:])
            after.append((1 - keep) * fresh + keep * state)
        states = after
    return torch.stack(states)


@pytest.mark.parametrize("graph", ["chain", "full"])
@pytest.mark.parametrize("rounds", [0, 2])
def test_message_passing_is_a_loop_over_rounds_nodes_and_edges(graph: str, rounds: int) -> None:
    network = messages(graph, rounds=rounds)
    rows = [[4, 5, 8, 6], [7], [5, 5]]
    source = tokens(rows)
    result = network.features(source, source)
    for position in range(2):
        for row, ids in enumerate(rows):
            expected = by_loops(network, position, ids, graph, rounds or len(ids))
            assert torch.allclose(result[position, row, : len(ids)], expected, rtol=0, atol=1e-12)
    assert torch.equal(network(source, source), network.head(result))


@pytest.mark.parametrize(("graph", "reach"), [("chain", 2), ("full", 7)])
def test_in_two_rounds_a_message_goes_two_edges_far(graph: str, reach: int) -> None:
    network = messages(graph, rounds=2)
    plain, changed = tokens([[4, 4, 4, 4, 4, 4, 4, 4]]), tokens([[8, 4, 4, 4, 4, 4, 4, 4]])
    moved = (network.features(plain) - network.features(changed)).abs().amax(dim=-1)[0, 0] > 1e-12
    assert moved.tolist() == [position <= reach for position in range(8)]


def test_a_batch_without_tokens_has_outputs_without_tokens() -> None:
    network = messages("chain")
    assert network.generate(torch.full((2, 3, 1), PAD), 0).tolist() == [[[PAD]] * 3] * 2
    assert network.generate(torch.zeros(2, 0, 4, dtype=torch.int64), 0).shape == (2, 0, 4)


def test_a_graph_of_another_name_is_refused() -> None:
    with pytest.raises(ModelError, match="use chain or full"):
        messages("ring")


def test_message_passing_in_a_chain_learns_running_parity_beyond_the_rows_it_saw() -> None:
    draw = torch.Generator().manual_seed(0)
    bits = torch.randint(0, 2, (1, 64, 5), generator=draw)
    sums = bits.cumsum(dim=-1) % 2 + 4
    network = built(lambda: message_passing.Network(WORDS, message_passing.SETTINGS | {"width": 32}), 1)
    trained(network, (bits + 4, sums), sums, ["a"], 200)
    longer = torch.randint(0, 2, (1, 100, 6), generator=draw)
    right = network.generate(longer + 4, 0) == longer.cumsum(dim=-1) % 2 + 4
    assert right.double().mean() > 0.95
