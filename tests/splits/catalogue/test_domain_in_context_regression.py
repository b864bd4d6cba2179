"""In-context regression: prompts hold what they say, inputs move as they are named, and ridge is best under each shift."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import BadDefinition
from farshift.loaders.generators.in_context_regression import INPUTS, rows

WIDTH = 4


def regime(inputs="standard", name="", count=400, least=6, most=6):
    return {"name": name or inputs, "inputs": inputs, "rows": count, "least": least, "most": most}


def drawn(*regimes, most_pairs=6, noise=0.0, width=WIDTH):
    """Prompts (n, lines, width + 2), targets, and the table."""
    table = rows(width=width, most_pairs=most_pairs, noise=noise, regimes=list(regimes), seed="t")
    flat = table["prompt"].combine_chunks().flatten().to_numpy().astype(np.float64)
    return flat.reshape(-1, most_pairs + 1, width + 2), table["target"].to_numpy(), table


def ridge(prompt, penalty):
    """The prediction of ridge regression on each prompt's pairs, (n,), by NumPy's solver."""
    pairs = prompt[:, :-1] * prompt[:, :-1, -1:]
    x, y = pairs[..., :-2], pairs[..., -2]
    gram = np.einsum("nki,nkj->nij", x, x) + penalty * np.eye(x.shape[2])
    weights = np.linalg.solve(gram, np.einsum("nki,nk->ni", x, y)[..., None])[..., 0]
    return np.einsum("ni,ni->n", prompt[:, -1, :-2], weights)


def test_lines_are_pairs_then_nothing_and_last_the_query_without_its_answer():
    prompt, _, table = drawn(regime(least=1, most=6))
    pairs = table["pairs"].to_numpy()
    assert set(pairs.tolist()) == {1, 2, 3, 4, 5, 6}
    given = np.arange(6) < pairs[:, None]
    assert np.array_equal(prompt[:, :6, -1] == 1, given)
    assert (prompt[:, :6][~given] == 0).all()
    assert (prompt[:, 6, WIDTH:] == 0).all()
    assert (prompt[:, 6, :WIDTH] != 0).any(axis=1).all()


@pytest.mark.parametrize("pairs", [1, 2, 3, 4, 6])
def test_without_noise_least_squares_solves_a_prompt_of_as_many_pairs_as_unknowns_and_none_of_fewer(pairs):
    prompt, target, _ = drawn(regime(least=pairs, most=pairs))
    x, y = prompt[:, :pairs, :WIDTH], prompt[:, :pairs, WIDTH]
    result = np.array(
        [q @ np.linalg.lstsq(a, b, rcond=None)[0] for a, b, q in zip(x, y, prompt[:, -1, :WIDTH], strict=True)]
    )
    error = np.median(np.abs(result - target))
    if pairs >= WIDTH:
        assert error < 1e-5
    else:
        assert error > 0.2
        share = np.mean((result - target) ** 2) / np.mean(target**2)
        assert share == pytest.approx(1 - pairs / WIDTH, abs=0.15), "of random directions, those that pairs do not span"


def test_noise_is_of_the_size_that_is_asked_for_in_pairs_and_in_the_target():
    clean, exact, _ = drawn(regime())
    noisy, target, _ = drawn(regime(), noise=0.5)
    assert (noisy[..., WIDTH] - clean[..., WIDTH]).std() == pytest.approx(0.5 * np.sqrt(6 / 7), rel=0.05)
    assert (target - exact).std() == pytest.approx(0.5, rel=0.1)
    assert np.array_equal(noisy[..., :WIDTH], clean[..., :WIDTH])


def test_each_way_of_moving_inputs_is_what_its_name_says():
    table = {name: drawn(regime(name, least=40, most=40), most_pairs=40, width=6)[0][..., :6] for name in INPUTS}
    assert np.allclose(np.cov(table["standard"].reshape(-1, 6).T), np.eye(6), atol=0.05)
    assert np.array_equal(drawn(regime("tripled", name="standard"))[0][..., :4], 3 * drawn(regime())[0][..., :4])
    plane = np.linalg.matrix_rank(table["subspace"], tol=1e-4)
    assert (plane == 3).all()
    drop = np.linalg.eigvalsh(np.einsum("nki,nkj->nij", table["skewed"], table["skewed"]) / 41).mean(axis=0)[::-1]
    assert drop / drop.sum() == pytest.approx(1 / np.arange(1, 7) ** 2 / 1.4914, abs=0.05)
    assert drop.sum() == pytest.approx(6, rel=0.1)
    orthant = np.sign(table["orthants"])
    assert (orthant[:, :40] * orthant[:, :1] >= 0).all(), "the pairs of a row share their signs"
    assert (orthant[:, -1] == orthant[:, 0]).mean() == pytest.approx(0.5, abs=0.05)
    assert table["tripled query"][:, -1].std() == pytest.approx(3, rel=0.05)
    assert table["tripled query"][:, :40].std() == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("inputs", INPUTS)
def test_the_best_penalty_is_the_noises_variance_wherever_inputs_lie(inputs):
    prompt, target, _ = drawn(regime(inputs, count=4000), noise=0.5)
    error = {penalty: np.mean((ridge(prompt, penalty) - target) ** 2) for penalty in (1e-6, 0.25, 4.0)}
    assert error[0.25] <= 1.001 * min(error.values())
    assert error[0.25] < target.var()


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"inputs": "sideways"}, "inputs = 'sideways': use one of standard, skewed"),
        ({"least": 0}, "standard: least = 0, most = 6: use 1 <= least <= most <= 6"),
        ({"most": 7}, "standard: least = 6, most = 7: use 1 <= least <= most <= 6"),
    ],
)
def test_regimes_that_cannot_be_drawn_are_refused(said, why):
    with pytest.raises(BadDefinition, match=why):
        drawn(regime() | {"name": "standard"} | said)


def test_the_benchmarks_ask_for_the_target_and_show_the_prompt_alone():
    for name in ("in_context_regression/covariate_shift", "in_context_regression_lengths/prompt_length"):
        task = find_benchmark(name).task
        assert (task.inputs, task.label) == (("prompt",), "target")
