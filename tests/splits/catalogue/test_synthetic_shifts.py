"""Slabs, shifted Gaussians and cloned languages: each holds the property that it was made for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import cloned_scan, shifted_gaussians, slabs
from farshift.loaders.generators.scan import list_commands
from hypothesis import given
from hypothesis import strategies as st


def columns(table, width: int):
    return table["inputs"].combine_chunks().flatten().to_numpy().reshape(-1, width), table["label"].to_numpy()


@given(st.sampled_from([3, 5]), st.integers(0, 10**6))
def test_the_slabs_of_a_class_lie_between_those_of_the_other_and_two_margins_apart(count, seed):
    label = np.arange(400) % 2
    values = slabs.draw_slab_input(label, count, str(seed))
    width = (2 - 0.2 * (count - 1)) / count
    starts = -1 + np.arange(count) * (width + 0.2)
    slab = np.searchsorted(starts, values + 1e-12, side="right") - 1
    assert (values >= -1 - 1e-12).all()
    assert (values <= starts[slab] + width + 1e-9).all(), "no value lies between two slabs"
    assert ((slab - count // 2) % 2 == label).all(), "classes alternate, and class 0 has the middle"
    assert set(slab.tolist()) == set(range(count))


def test_one_input_is_linear_and_only_what_is_shuffled_ceases_to_tell():
    counts = {"as drawn": 4000, "linear shuffled": 2000, "slabs shuffled": 2000}
    table = slabs.rows(slabs=5, width=6, counts=counts, seed="t")
    inputs, label = columns(table, 6)
    environment = np.array(table["environment"])
    assert Counter(environment.tolist()) == counts
    linear = (inputs[:, 0] > 0) == (label == 1)
    width = (2 - 0.8) / 5
    slab = np.floor((inputs[:, 1:] + 1) / (width + 0.2)).astype(int)
    output = (slab % 2 == 1).sum(1)
    by_slabs = (output == 5) == (label == 1)
    assert linear[environment == "as drawn"].all()
    assert by_slabs[environment == "as drawn"].all()
    assert np.isin(output, (0, 5)).all(), "slab inputs are shuffled together: they always agree with one another"
    assert abs(linear[environment == "linear shuffled"].mean() - 0.5) < 0.05
    assert by_slabs[environment == "linear shuffled"].all()
    assert linear[environment == "slabs shuffled"].all()
    assert abs(by_slabs[environment == "slabs shuffled"].mean() - 0.5) < 0.05
    assert np.abs(inputs[environment == "as drawn", 0]).min() >= 0.1, "the linear input has the same margin"


@pytest.mark.parametrize("options", [{"slabs": 4, "counts": {"as drawn": 2}}, {"slabs": 3, "counts": {"drawn": 2}}])
def test_slabs_that_there_are_not_are_refused(options):
    with pytest.raises(BadDefinition, match="slabs"):
        slabs.rows(width=2, seed="t", **options)


def test_under_covariate_shift_inputs_move_and_the_concept_stays():
    table = shifted_gaussians.rows(form="covariate", width=4, counts={"0": 8000, "1": 4000, "3": 4000}, seed="t")
    inputs, label = columns(table, 4)
    shift = table["shift"].to_numpy()
    for degree in (0.0, 1.0, 3.0):
        at = shift == degree
        assert abs(inputs[at, 0].mean() - degree) < 0.05
        assert np.abs(inputs[at, 1:].mean(0)).max() < 0.05
        concept = (inputs[at, 1] > 0) ^ (inputs[at, 0] > 1)
        assert abs((concept == label[at]).mean() - 0.95) < 0.015
        assert abs(label[at].mean() - 0.5) < 0.03, "the labels do not shift"


def test_under_concept_shift_inputs_stay_and_the_boundary_turns():
    counts = {"0": 8000, "30": 4000, "45": 4000, "60": 4000, "90": 4000}
    inputs, label = columns(table := shifted_gaussians.rows(form="concept", width=4, counts=counts, seed="t"), 4)
    shift = table["shift"].to_numpy()
    for degree in map(float, counts):
        at = shift == degree
        assert np.abs(inputs[at].mean(0)).max() < 0.06
        agree = ((inputs[at, 0] > 0) == (label[at] == 1)).mean()
        # Two planes through the centre of a round cloud disagree on angle / 180 of it.
        expected = 0.05 + 0.9 * (1 - degree / 180)
        assert abs(agree - expected) < 0.02, degree


@pytest.mark.parametrize(("form", "degree"), [("label", "0"), ("concept", "31")])
def test_shifts_that_there_are_not_are_refused(form, degree):
    with pytest.raises(BadDefinition, match="shifted_gaussians"):
        shifted_gaussians.rows(form=form, width=4, counts={degree: 2}, seed="t")


def test_a_clone_says_the_same_in_words_that_are_all_others():
    table = cloned_scan.rows().to_pydict()
    output: dict[str, dict[str, tuple[str, str]]] = {"original": {}, "clone": {}}
    for command, actions, language, meaning in zip(*table.values(), strict=True):
        output[language][meaning] = (command, actions)
    assert {meaning: actions for meaning, (_, actions) in output["clone"].items()} == list_commands()
    assert {command: actions for command, actions in output["original"].values()} == list_commands()
    words = {
        language: {word for command, _ in pairs.values() for word in command.split()}
        for language, pairs in output.items()
    }
    assert not words["original"] & words["clone"]
    assert len(words["original"]) == len(words["clone"]) == 13
    translation = dict(
        pair
        for meaning, (command, _) in output["clone"].items()
        for pair in zip(command.split(), meaning.split(), strict=True)
    )
    assert all(" ".join(translation[w] for w in c.split()) == m for m, (c, _) in output["clone"].items())
