"""Networks that read prompts: ridge regression is NumPy's on the pairs alone, the Transformer knows no order of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import farshift as fs
import numpy as np
import pytest
import torch
from farshift.baselines.compatibility import find_networks_for
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.networks import prompt_ridge, prompt_transformer
from farshift.baselines.recipe import find_recipe
from farshift.baselines.running.suite import explain_unfit
from farshift.baselines.running.sweep import run_baseline
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model import Task
from farshift.benchmarks.statistics.interval import is_measured
from farshift.core.errors import ModelError
from torch import Tensor

from .side_by_side import built

LINES, INPUTS = 5, 3
SIZES = Sizes(1, numbers=LINES * (INPUTS + 2), shape=(LINES, INPUTS + 2))
SMALL = prompt_transformer.SETTINGS | {"width": 8, "heads": 2, "layers": 2, "feedforward": 16}
MAKERS = {
    "ridge": lambda: prompt_ridge.Network(SIZES, {"penalty": 0.3}),
    "transformer": lambda: prompt_transformer.Network(SIZES, SMALL),
}
every = pytest.mark.parametrize("name", MAKERS)


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


@every
def test_no_order_of_the_pairs_changes_an_answer(name: str) -> None:
    network, created = built(MAKERS[name], 2), prompts(2, [4, 4])
    moved = created[:, :, [2, 0, 3, 1, 4]]
    assert torch.allclose(outputs(network, moved), outputs(network, created), rtol=0, atol=1e-10)


@every
def test_lines_without_a_pair_change_no_answer(name: str) -> None:
    network, created = built(MAKERS[name], 2), prompts(2, [2, 3])
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


def test_the_penalty_is_learnt_and_comes_to_the_noises_variance() -> None:
    draw = torch.Generator().manual_seed(1)
    rows = 4000
    x = torch.randn(1, rows, LINES, INPUTS, generator=draw, dtype=torch.float64)
    weights = torch.randn(1, rows, 1, INPUTS, generator=draw, dtype=torch.float64)
    y = (x * weights).sum(-1, keepdim=True)
    y = y + torch.randn(y.shape, generator=draw, dtype=torch.float64)
    created = torch.cat([x, y, torch.ones_like(y)], dim=-1)
    target = y[..., -1, 0]
    created[..., -1, INPUTS:] = 0
    network = built(lambda: prompt_ridge.Network(SIZES, {"penalty": 10.0}), 1)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.1)
    for _ in range(120):
        optimiser.zero_grad()
        (outputs(network, created)[..., 0] - target).square().mean().backward()
        optimiser.step()
    assert network.log_penalty.exp().item() == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("sizes", [Sizes(1, numbers=9), Sizes(1, (3, 3)), Sizes(1, numbers=48, shape=(3, 4, 4))])
@pytest.mark.parametrize("network", [prompt_ridge, prompt_transformer])
def test_what_is_no_prompt_is_refused(network: Any, sizes: Sizes) -> None:
    with pytest.raises(ModelError, match="reads prompts, one numeric input of two axes"):
        network.Network(sizes, network.SETTINGS)
    with pytest.raises(ModelError, match=r"penalty = 0\.0: give a number above 0"):
        prompt_ridge.Network(SIZES, {"penalty": 0.0})


def test_they_are_offered_for_numbers_alone_and_belong_on_prompts_alone() -> None:
    both = {"prompt_ridge", "prompt_transformer"}
    assert both <= set(find_networks_for(Task("regression", ("x",), "y")))
    assert not both & set(find_networks_for(Task("classification", ("x",), "y", 2)))
    for name in ("prompt-ridge", "prompt-transformer"):
        assert explain_unfit(find_recipe(name), find_benchmark("in_context_regression/covariate_shift")) == ""
        assert explain_unfit(find_recipe(name), find_benchmark("hamiltonian/new_systems")).startswith(
            "it is for in_context_regression"
        )


def test_on_the_benchmark_ridge_on_the_prompt_errs_less_on_longer_prompts_and_a_flat_ridge_learns_nothing(
    tmp_path: Path,
) -> None:
    on = "in_context_regression_lengths/prompt_length"

    def regret(name: str) -> tuple[float, float, float]:
        result = fs.score(run_baseline(name, on, seeds=1, budget="quick", out=tmp_path / name))
        worst = result.metrics["worst_group_squared_regret@1"].ood
        assert is_measured(worst)
        return result.id.value, result.ood.value, worst.value

    id, ood, worst = regret("prompt-ridge")
    assert ood < 0.7 < id < 1.5
    assert worst < -3
    _, flat, worst = regret("ridge")
    assert flat > 2
    assert worst > 0
