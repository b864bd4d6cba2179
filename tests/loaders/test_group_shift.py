"""Two groups with a graded shift between them: each regime shifts what its name says, and nothing else."""

from __future__ import annotations

from math import erf, sqrt

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators.group_shift import rows

REGIMES = {"none": {}, "covariate": {"covariate": 2.0}, "concept": {"concept": 2.0}, "omitted": {"omitted": 2.0}}


@pytest.fixture(scope="module")
def regimes():
    table = rows(seed="s", regimes=REGIMES, counts={"train": [4000, 1000], "test": [2000, 3000]})
    x = np.array(table["x"].combine_chunks().flatten()).reshape(len(REGIMES), -1, 2)
    attribute, label = (np.array(table[name]).reshape(len(REGIMES), -1) for name in ("attribute", "label"))
    assert table["sample"].to_pylist()[:10_000] == ["train"] * 5000 + ["test"] * 5000
    assert attribute[0].sum() == 4000
    return {name: (x[at], attribute[at] == 1, label[at]) for at, name in enumerate(REGIMES)}


def test_covariate_shift_moves_one_input_of_group_1_only(regimes):
    (before, one, _), (after, _, label) = regimes["none"], regimes["covariate"]
    assert after - before == pytest.approx(np.stack([2.0 * one, 0 * one], axis=1), abs=1e-6)
    for group in (one, ~one):  # the concept is the one of before: right but for the noise near the boundary
        assert np.mean((after[group, 0] ** 2 + after[group, 1] > 1) == label[group]) > 0.93


def test_concept_shift_leaves_inputs_and_reverses_one_of_them_in_group_1(regimes):
    (before, one, same), (after, _, label) = regimes["none"], regimes["concept"]
    assert (before == after).all()
    assert (same[~one] == label[~one]).all()
    assert np.mean((after[one, 0] ** 2 - after[one, 1] > 1) == label[one]) > 0.93
    assert np.mean((after[one, 0] ** 2 + after[one, 1] > 1) == label[one]) < 0.7


def test_an_omitted_cause_that_is_commoner_in_group_1_raises_its_labels(regimes):
    (before, one, _), (after, _, label) = regimes["none"], regimes["omitted"]
    assert (before == after).all()
    x, own = after[:, 0] ** 2 + after[:, 1], sqrt(4 + 1 / 16)
    for group, mean in ((~one, 0.0), (one, 2.0)):
        expected = np.mean([(1 + erf((score + mean - 1) / own / sqrt(2))) / 2 for score in x[group]])
        assert label[group].mean() == pytest.approx(expected, abs=0.02)


def test_an_unknown_shift_is_refused():
    with pytest.raises(BadDefinition, match="'turn' is no shift"):
        rows(seed="s", regimes={"odd": {"turn": 1.0}}, counts={"train": [1, 1]})
