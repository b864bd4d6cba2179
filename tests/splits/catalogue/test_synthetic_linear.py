"""The linear unit tests: what the paper states of its three problems holds for the rows that are drawn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators.linear_unit_tests import SIZE, rows


def drawn(example: int, scrambled: bool = False, count: int = 4000):
    table = rows(example=example, scrambled=scrambled, train_rows=count, test_rows=count, seed="t")
    inputs = table["inputs"].combine_chunks().flatten().to_numpy().reshape(-1, 2 * SIZE)
    return inputs, table["target"].to_numpy(), np.array(table["environment"])


def slope(inputs, target):
    return np.linalg.lstsq(np.c_[inputs, np.ones(len(inputs))], target, rcond=None)[0][:-1]


@pytest.mark.parametrize("example", [1, 2, 3])
def test_there_are_three_environments_each_with_rows_whose_spurious_inputs_are_shuffled(example):
    inputs, _, environment = drawn(example, count=50)
    names = [f"E{number}{ending}" for number in range(3) for ending in ("", " shuffled")]
    assert Counter(environment.tolist()) == dict.fromkeys(names, 50)
    assert inputs.shape == (300, 10)
    assert len(np.unique(inputs, axis=0)) == 300


def test_the_first_problem_has_one_cause_and_an_effect_whose_use_differs_by_environment():
    inputs, target, environment = drawn(1)
    by_cause = [slope(inputs[environment == name, :SIZE], target[environment == name]) for name in ("E0", "E1", "E2")]
    assert np.allclose(by_cause[0], by_cause[1], atol=0.15)
    assert np.allclose(by_cause[1], by_cause[2], atol=0.15)
    both = [slope(inputs[environment == name], target[environment == name])[SIZE:] for name in ("E0", "E2")]
    assert np.abs(both[0] - both[1]).max() > 0.3, "the effect tells little where noise is small, and much where not"
    for name, spread in (("E0", 0.1), ("E1", 1.5), ("E2", 2.0)):
        assert abs(inputs[environment == name, :SIZE].std() / spread - 1) < 0.03
        rest = target[environment == name] - inputs[environment == name, :SIZE] @ by_cause[0]
        assert abs(rest.std() / (spread * np.sqrt(SIZE)) - 1) < 0.1


def test_the_second_problem_is_cows_on_grass_told_by_a_faint_foreground():
    inputs, target, environment = drawn(2)
    assert (target == (inputs[:, :SIZE].astype(np.float64).sum(1) > 0)).mean() > 0.999
    for name, usual, cows in (("E0", 0.95, 0.3), ("E1", 0.97, 0.5), ("E2", 0.99, 0.7)):
        at = environment == name
        grass = inputs[at, SIZE:].mean(1) > 0
        assert abs(target[at].mean() - cows) < 0.03
        assert abs((grass == (target[at] == 1)).mean() - usual) < 0.015
        shuffled = environment == f"{name} shuffled"
        agree = ((inputs[shuffled, SIZE:].mean(1) > 0) == (target[shuffled] == 1)).mean()
        chance = cows * target[shuffled].mean() + (1 - cows) * (1 - target[shuffled].mean())
        assert abs(agree - chance) < 0.05, "grass says nothing of the animal any more"
    ratio = np.abs(inputs[:, SIZE:]).mean() / np.abs(inputs[:, :SIZE]).mean()
    assert abs(ratio / 100 - 1) < 0.02


def test_the_third_problem_has_a_margin_common_to_all_and_a_wider_one_of_each_environment():
    inputs, target, environment = drawn(3)
    for name in ("E0", "E1", "E2"):
        zero, item = (inputs[(environment == name) & (target == label)] for label in (0, 1))
        assert np.allclose(zero[:, :SIZE].mean(0), 0.1, atol=0.01)
        assert np.allclose(item[:, :SIZE].mean(0), -0.1, atol=0.01)
        assert np.allclose(zero[:, SIZE:].mean(0), -item[:, SIZE:].mean(0), atol=0.02)
        assert np.allclose(zero.std(0), 0.1, atol=0.01)
    centres = [inputs[(environment == f"E{number}") & (target == 0), SIZE:].mean(0) for number in range(3)]
    assert min(np.abs(centres[a] - centres[b]).max() for a, b in ((0, 1), (0, 2), (1, 2))) > 0.3


@pytest.mark.parametrize("example", [1, 2, 3])
def test_scrambling_turns_the_same_rows_by_an_orthogonal_matrix(example):
    plain, target, _ = drawn(example, count=200)
    turned, same, _ = drawn(example, scrambled=True, count=200)
    assert (target == same).all()
    matrix = np.linalg.lstsq(plain, turned, rcond=None)[0]
    assert np.allclose(plain @ matrix, turned, atol=1e-3)
    assert np.allclose(np.linalg.norm(plain, axis=1), np.linalg.norm(turned, axis=1), rtol=1e-4)
    assert not np.allclose(plain, turned, atol=0.01)


def test_a_problem_that_there_is_not_is_refused():
    with pytest.raises(BadDefinition, match="example = 4: use 1, 2 or 3"):
        rows(example=4, scrambled=False, train_rows=1, test_rows=1, seed="t")
