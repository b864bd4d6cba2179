"""Networks of rows, sets and prompts are what their equations say, for each replica."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.compatibility import find_networks_for
from farshift.baselines.encoding.encoding import PAD, Sizes
from farshift.baselines.networks import (
    deep_sets,
    linear,
    message_passing,
    prompt_bayes,
    prompt_ridge,
    prompt_transformer,
    quadratic_mlp,
)
from farshift.baselines.recipe import find_recipe
from farshift.baselines.replicas.stacked import count_parameters
from farshift.baselines.running.plan import explain_unfit
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model import Task
from torch import Tensor

from .side_by_side import agrees, built

MIXED = Sizes(3, (4, 2), 5)
PAIRS = Sizes(7, (7, 6))


def mixed(replicas: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    fields = [torch.randint(0, values, (replicas, rows), generator=draw) for values in MIXED.categories]
    return torch.stack(fields, dim=-1), torch.randn(replicas, rows, 5, generator=draw, dtype=torch.float64)


def pairs(replicas: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(0, 6, (replicas, rows, 2), generator=torch.Generator().manual_seed(0))
    return ids, torch.zeros(replicas, rows, 0, dtype=torch.float64)


def test_softmax_regression_starts_at_even_odds() -> None:
    logits = linear.Network(MIXED, linear.SETTINGS).double()(*mixed(1, 4))
    assert torch.equal(logits, torch.zeros(1, 4, 3, dtype=torch.float64))


def test_the_quadratic_network_is_two_products_with_one_hot_rows() -> None:
    network = built(lambda: quadratic_mlp.Network(PAIRS, {"width": 11}), 3)
    ids, empty = pairs(3, 20)
    hot = torch.cat([F.one_hot(ids[..., 0], 7), F.one_hot(ids[..., 1], 6)], dim=-1).double()
    expected = (hot @ network.into.weight).square() @ network.head.weight.transpose(1, 2)
    assert torch.allclose(network(ids, empty), expected, rtol=0, atol=1e-14)


def test_the_quadratic_networks_weights_are_those_of_the_paper() -> None:
    torch.manual_seed(0)
    network = quadratic_mlp.Network(Sizes(97, (97, 97)), quadratic_mlp.SETTINGS)
    for weight in network.parameters():
        assert weight.std().item() == pytest.approx(0.5 / 1000 ** (1 / 3), rel=0.02)
        assert weight.mean().item() == pytest.approx(0, abs=0.002)
    assert count_parameters(network) == 500 * 3 * 97


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


LINES, INPUTS = 5, 3
SIZES = Sizes(1, numbers=LINES * (INPUTS + 2), shape=(LINES, INPUTS + 2))
SMALL = prompt_transformer.SETTINGS | {"width": 8, "heads": 2, "layers": 2, "feedforward": 16}
MAKERS_PROMPTS = {
    "bayes": lambda: prompt_bayes.Network(SIZES, prompt_bayes.SETTINGS),
    "ridge": lambda: prompt_ridge.Network(SIZES, {"penalty": 0.3}),
    "transformer": lambda: prompt_transformer.Network(SIZES, SMALL),
}
every = pytest.mark.parametrize("name", MAKERS_PROMPTS)


def prompts(replicas: int, pairs: list[int]) -> Tensor:
    """A prompt for each number of pairs, (K, n, lines, inputs + 2)."""
    draw = torch.Generator().manual_seed(0)
    created = torch.randn(replicas, len(pairs), LINES, INPUTS + 2, generator=draw, dtype=torch.float64)
    created[..., -1] = 1
    for row, count in enumerate(pairs):
        created[:, row, count : LINES - 1] = 0
    created[..., -1, INPUTS:] = 0
    return created


def outputs(network: Any, made: Tensor) -> Tensor:
    result: Tensor = network(torch.zeros(*made.shape[:2], 0, dtype=torch.int64), made.flatten(2))
    return result


@pytest.mark.parametrize("penalty", [0.3, 1e-9])
def test_ridge_is_numpys_on_the_pairs_of_each_row(penalty: float) -> None:
    created = prompts(2, [1, 2, 3, 4])
    result = outputs(built(lambda: prompt_ridge.Network(SIZES, {"penalty": penalty}), 2), created)
    for replica in range(2):
        for row, count in enumerate([1, 2, 3, 4]):
            pairs, query = created[replica, row, :count].numpy(), created[replica, row, -1, :INPUTS].numpy()
            x, y = pairs[:, :INPUTS], pairs[:, INPUTS]
            stacked = np.concatenate([x, np.sqrt(penalty) * np.eye(INPUTS)])
            weights = np.linalg.lstsq(stacked, np.concatenate([y, np.zeros(INPUTS)]), rcond=None)[0]
            assert result[replica, row].item() == pytest.approx(query @ weights, abs=1e-5)


def test_bayes_is_the_average_over_weights_and_deviations_by_brute_force() -> None:
    """One input: the posterior of (w, s) on a grid of w, weighed by the prior of each s."""
    sizes = Sizes(1, numbers=15, shape=(5, 3))
    draw = torch.Generator().manual_seed(3)
    created = torch.randn(1, 6, 5, 3, generator=draw, dtype=torch.float64)
    created[..., -1] = 1
    created[:, :3, 2:4] = 0
    created[:, :, 4, 1:] = 0
    created[:, 1::2, 4, 1] = 1  # every other row asks for the deviation
    network = built(lambda: prompt_bayes.Network(sizes, {"least": 0.3, "most": 1.2, "levels": 4}), 1)
    prior = np.array([0.1, 0.2, 0.3, 0.4])
    with torch.no_grad():
        network.log_prior.copy_(torch.tensor(np.log(prior))[None])
    result = outputs(network, created)[0, :, 0].detach().numpy()
    w, s = np.linspace(-8, 8, 8001)[:, None], np.linspace(0.3, 1.2, 4)
    for row, answer in enumerate(result):
        pairs = created[0, row, :4].numpy()
        pairs = pairs[pairs[:, 2] == 1]
        mass = prior * np.exp(-(w**2) / 2)
        for x, y, _ in pairs:
            mass = mass * np.exp(-((y - w * x) ** 2) / (2 * s**2)) / s
        expected = s if row % 2 else w * created[0, row, 4, 0].item()
        assert answer == pytest.approx((mass * expected).sum() / mass.sum(), abs=1e-6)


@every
def test_no_order_of_the_pairs_changes_an_answer(name: str) -> None:
    network, created = built(MAKERS_PROMPTS[name], 2), prompts(2, [4, 4])
    moved = created[:, :, [2, 0, 3, 1, 4]]
    assert torch.allclose(outputs(network, moved), outputs(network, created), rtol=0, atol=1e-10)


@every
def test_lines_without_a_pair_change_no_answer(name: str) -> None:
    network, created = built(MAKERS_PROMPTS[name], 2), prompts(2, [2, 3])
    junk = created.clone()
    empty = (created[..., -1] == 0) & (torch.arange(LINES) < LINES - 1)
    junk[..., :-1][empty] = 7.0
    assert torch.allclose(outputs(network, junk), outputs(network, created), rtol=0, atol=1e-10)


def test_a_position_tells_one_order_from_another() -> None:
    network, created = (
        built(lambda: prompt_transformer.Network(SIZES, SMALL | {"position": "sinusoidal"}), 1),
        prompts(1, [4]),
    )
    assert (outputs(network, created[:, :, [2, 0, 3, 1, 4]]) - outputs(network, created)).abs().max() > 1e-4


def test_they_are_offered_for_numbers_alone_and_belong_on_prompts_alone() -> None:
    both = {"prompt_ridge", "prompt_transformer"}
    assert both <= set(find_networks_for(Task("regression", ("x",), "y")))
    assert both & set(find_networks_for(Task("classification", ("x",), "y", 2))) == {"prompt_transformer"}
    for name in ("prompt-ridge", "prompt-transformer"):
        assert explain_unfit(find_recipe(name), find_benchmark("in_context_regression/covariate_shift")) == ""
        assert explain_unfit(find_recipe(name), find_benchmark("hamiltonian/new_systems")).startswith(
            "it is for in_context_regression"
        )
