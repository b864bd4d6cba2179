"""Diversity shift, correlation shift and the probe of a domain split, where the truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from audited import audited
from farshift.splits.audit.probe import compute_shifts

ROWS = 2000
PART = ["train"] * ROWS + ["ood_test"] * ROWS
GROUP = ["a"] * ROWS + ["b"] * ROWS


def domain(inputs, labels):
    return audited("domain", {"x": inputs.astype(np.float32), "y": labels}, PART, ["x"], group=GROUP)


def gaussians(seed, columns=6):
    return np.random.default_rng(seed).normal(size=(2 * ROWS, columns))


def draws(seed):
    return np.random.default_rng(seed).random(2 * ROWS)


def test_the_shifts_of_counted_cells_are_those_of_the_formulas():
    # Cell 0 is shared and its labels turn over, cell 1 is training's alone, cell 2 the test's.
    cell = np.array([0, 0, 0, 0, 1, 1, 0, 0, 2, 2, 2, 2])
    label = np.array([0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1])
    test = np.arange(12) >= 6
    p, q = 4 / 6, 2 / 6
    given = (abs(3 / 4 - 0) + abs(1 / 4 - 1)) * np.sqrt(p * q) / 2
    assert compute_shifts(cell, label, test) == pytest.approx(((2 / 6 + 4 / 6) / 2, given))


def test_equal_distributions_have_neither_shift_and_cannot_be_told_apart():
    result = domain(gaussians(0), (draws(1) < 0.5).astype(int))
    assert result["diversity_and_correlation"]["diversity"] <= 0.05
    assert result["diversity_and_correlation"]["correlation"] <= 0.05
    assert result["probe"]["domain_auroc"] == pytest.approx(0.5, abs=0.05)


def test_inputs_that_do_not_overlap_are_a_shift_of_diversity():
    inputs = gaussians(2)
    inputs[ROWS:, 0] += 8
    result = domain(inputs, (draws(3) < 0.5).astype(int))
    assert result["diversity_and_correlation"]["diversity"] > 0.9
    assert result["diversity_and_correlation"]["correlation"] < 0.05
    assert result["probe"]["domain_auroc"] > 0.99


def test_a_colour_that_turns_from_one_class_to_the_other_is_a_shift_of_correlation():
    """As ColoredMNIST: the colour agrees with the label in 85 % of training and in 10 % of the test."""
    labels = (draws(4) < 0.5).astype(int)
    agrees = draws(5) < np.repeat([0.85, 0.1], ROWS)
    inputs = gaussians(6)
    inputs[:, 0] = np.where(agrees, labels, 1 - labels) + 0.05 * inputs[:, 0]
    result = domain(inputs, labels)
    # By the formula: each colour has mass 1/2 in both parts, and the labels given it differ by 2 * 0.75.
    assert result["diversity_and_correlation"]["correlation"] == pytest.approx(0.75, abs=0.08)
    assert result["diversity_and_correlation"]["diversity"] < 0.05
    assert result["probe"]["domain_auroc"] == pytest.approx(0.5, abs=0.05)
    assert result["probe"]["id_accuracy"] - result["probe"]["ood_accuracy"] > 0.5


def test_a_probe_reads_texts_too():
    rng = np.random.default_rng(0)
    rows = 300
    texts = [
        " ".join(f"w{k}" for k in rng.integers(20 * (i >= rows), 30 + 20 * (i >= rows), 8)) for i in range(2 * rows)
    ]
    columns = {"q": texts, "y": (rng.random(2 * rows) < 0.5).astype(int)}
    result = audited(
        "domain", columns, ["train"] * rows + ["ood_test"] * rows, ["q"], group=["a"] * rows + ["b"] * rows
    )
    assert result["probe"]["domain_auroc"] > 0.95
    assert "diversity_and_correlation" not in result


def test_a_measured_label_has_a_probe_of_its_domains_alone():
    inputs = gaussians(7)
    inputs[ROWS:, 1] += 1
    result = domain(inputs, draws(8))
    assert result["probe"].keys() == {"domain_auroc"}
    assert (
        result["why"]
        == f"domains are disjoint; a linear probe tells the domains apart with AUROC {result['probe']['domain_auroc']:.2f}"
    )


def test_parts_of_a_few_rows_are_not_probed():
    columns = {"x": gaussians(9)[:4].astype(np.float32), "y": [0, 1, 0, 1]}
    result = audited("domain", columns, ["train"] * 3 + ["ood_test"], ["x"], group=["a", "a", "a", "b"])
    assert "probe" not in result
    assert "diversity_and_correlation" not in result


def test_a_wide_input_is_measured_in_hashed_columns():
    inputs = np.random.default_rng(10).normal(size=(400, 1100)).astype(np.float32)
    inputs[200:, :300] += 1
    part = ["train"] * 200 + ["ood_test"] * 200
    result = audited("domain", {"x": inputs, "y": draws(11)[:400]}, part, ["x"], group=["a"] * 200 + ["b"] * 200)
    assert result["probe"]["domain_auroc"] > 0.95


def test_a_column_that_is_constant_in_what_is_fitted_says_nothing():
    inputs = gaussians(12, 3).astype(np.float32)
    labels = (inputs[:, 0] > 0).astype(int)
    inputs[:ROWS, 2] = 0.1
    result = domain(inputs, labels)["probe"]
    assert result["ood_accuracy"] == pytest.approx(result["id_accuracy"], abs=0.03)


def test_a_text_of_no_words_is_no_feature():
    columns = {"q": [""] * 40, "k": list(range(40)), "y": [0, 1] * 20}
    result = audited("domain", columns, ["train"] * 20 + ["ood_test"] * 20, ["q", "k"], group=["a"] * 20 + ["b"] * 20)
    assert result["probe"]["domain_auroc"] > 0.9
