"""What an audit measures, against brute force and other libraries; shifts of domains where the truth is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module
from itertools import combinations, pairwise
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from audited import audited, rows_of
from farshift.splits.audit import is_same_audit, minimum_detectable_difference
from farshift.splits.audit.probe import auroc, compute_features, compute_shifts
from farshift.splits.audit.texts import count_duplicate_inputs
from farshift.splits.manifest import add_given_labels
from farshift.splits.measures.words import count_occurrences, count_words
from farshift.splits.rows import mark_repeated_inputs, read_repeated_inputs
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, ks_2samp
from sklearn.metrics import roc_auc_score

WORDS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=5).map(" ".join)


@given(st.lists(WORDS, min_size=2, max_size=8), st.lists(WORDS, min_size=1, max_size=8))
def test_unseen_words_and_pairs_are_those_that_sets_say(train, test):
    texts = [*train, *test]
    columns = {"q": texts, "k": list(range(len(texts))), "y": ["0"] * len(texts)}
    result = audited("length", columns, ["train"] * len(train) + ["ood_test"] * len(test), ["q", "k"])
    known = {pair for text in train for pair in pairwise(text.split())}
    if not known:
        assert "texts" not in result
        return
    measured = result["texts"]["q"]["ood_test"]
    words = [{word for text in side for word in text.split()} for side in (train, test)]
    assert measured["unseen_tokens"] == len(words[1] - words[0])
    expected = np.mean([any(pair not in known for pair in pairwise(text.split())) for text in test])
    assert measured["rows_with_unseen_pair"] == pytest.approx(expected, abs=5e-5)


def test_text_of_single_words_has_no_compounds_to_measure():
    result = audited("length", {"q": ["01", "11", "10"], "y": ["a", "b", "c"]}, ["train", "train", "ood_test"], ["q"])
    assert "texts" not in result


@given(st.lists(st.integers(0, 4), min_size=1, max_size=20), st.lists(st.integers(0, 4), min_size=1, max_size=20))
def test_label_marginals_lie_apart_by_their_total_variation(train, test):
    part = ["train"] * len(train) + ["id_test"] * len(test)
    result = audited("length", {"k": list(range(len(part))), "y": [*train, *test]}, part, ["k"])["labels"]
    left, right = Counter(train), Counter(test)
    apart = sum(abs(left[k] / len(train) - right[k] / len(test)) for k in {*left, *right}) / 2
    assert result["distinct"] == {"train": len(left), "id_test": len(right)}
    assert result["total_variation_from_train"]["id_test"] == pytest.approx(apart, abs=5e-5)
    assert result["shares"]["train"] == {
        str(k): pytest.approx(left[k] / len(train), abs=5e-5) for k in sorted({*left, *right})
    }


def test_labels_that_are_measured_are_compared_by_their_distributions():
    values = np.random.default_rng(0).normal(size=300)
    values[200:] += 1
    part = ["train"] * 200 + ["ood_test"] * 100
    result = audited("length", {"k": list(range(300)), "y": values}, part, ["k"])["labels"]
    expected = ks_2samp(values[:200], values[200:]).statistic
    assert result["kolmogorov_smirnov_from_train"]["ood_test"] == pytest.approx(expected, abs=5e-5)
    assert result["mean"]["train"] == pytest.approx(values[:200].mean(), abs=5e-5)
    assert "total_variation_from_train" not in result


def test_labels_that_are_tensors_are_only_told_apart():
    grids = np.array([[0, 1], [0, 1], [1, 1]], np.int64)
    result = audited("length", {"k": [1, 2, 3], "y": grids}, ["train", "train", "ood_test"], ["k"])
    assert result["labels"] == {"distinct": {"train": 1, "ood_test": 1}}


@pytest.mark.parametrize("values", [[True, False, True, True], [b"a", b"b", b"a", b"a"], [1.5, 2.5, 1.5, 1.5]])
def test_labels_of_every_type_are_told_apart(values):
    result = audited("length", {"k": [1, 2, 3, 4], "y": values}, ["train", "train", "ood_test", "ood_test"], ["k"])
    assert result["labels"]["distinct"] == {"train": 2, "ood_test": 1}


def test_the_twenty_commonest_of_many_labels_are_shown():
    labels = [k // 2 if k < 60 else k for k in range(100)]
    result = audited("length", {"k": list(range(100)), "y": labels}, ["train"] * 100, ["k"])["labels"]
    assert result["distinct"]["train"] == 70
    assert list(result["shares"]["train"]) == [str(k) for k in range(20)]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["train", "ood_test"])), min_size=2, max_size=30))
def test_severities_are_summed_up_as_numpy_sums_them_up(drawn):
    severity, part = zip(*drawn, strict=True)
    columns = {"k": list(range(len(part))), "y": ["0"] * len(part)}
    result = audited("length", columns, list(part), ["k"], severity=list(severity))
    for name in set(part):
        values = np.array([s for s, p in drawn if p == name])
        assert result["severity"][name]["min"] == values.min()
        assert result["severity"][name]["mean"] == pytest.approx(values.mean(), abs=5e-4)
        assert result["severity"][name]["quantiles"]["0.95"] == pytest.approx(np.quantile(values, 0.95), abs=5e-4)
        counts = dict(
            zip(result["severity_histogram"]["values"], result["severity_histogram"]["counts"][name], strict=True)
        )
        assert {value: n for value, n in counts.items() if n} == Counter(values.tolist())


def test_many_severities_are_counted_in_twenty_four_bins():
    severity = np.random.default_rng(0).random(500)
    part = ["train" if s < 0.5 else "ood_test" for s in severity]
    columns = {"k": list(range(500)), "y": ["0"] * 500}
    result = audited("length", columns, part, ["k"], severity=severity.tolist())["severity_histogram"]
    assert len(result["edges"]) == 25
    assert [sum(result["counts"][name]) for name in ("train", "ood_test")] == [
        part.count("train"),
        part.count("ood_test"),
    ]


def test_groups_are_counted_and_compared():
    group = ["a"] * 3 + ["b"] + ["b"] * 2 + ["c"] * 2
    columns = {"k": list(range(8)), "y": ["0", "1"] * 4}
    result = audited("domain", columns, ["train"] * 4 + ["ood_test"] * 4, ["k"], group=group)["groups"]
    assert result["count"] == {"train": 2, "ood_test": 2}
    assert result["shared_with_train"] == {"ood_test": 1}
    assert result["rows"] == {"train": {"a": 3, "b": 1}, "ood_test": {"b": 2, "c": 2}}
    assert result["total_variation_from_train"]["ood_test"] == 0.75


def test_of_a_thousand_groups_the_twenty_largest_are_named():
    group = [f"g{k:04d}" for k in range(1000) for _ in range(1 + (k < 20))]
    columns = {"k": list(range(1020)), "y": ["0"] * 1020}
    result = audited("domain", columns, ["train"] * 1020, ["k"], group=group)["groups"]
    assert result["count"] == {"train": 1000}
    assert result["rows"]["train"] == {f"g{k:04d}": 2 for k in range(20)}


def test_the_transition_matrix_counts_true_against_given_labels():
    truth = np.random.default_rng(0).integers(0, 3, 200).tolist()
    override = [None if k % 3 else (t + k) % 3 for k, t in enumerate(truth)]
    part = ["train"] * 150 + ["id_test"] * 50
    override[150:] = [None] * 50
    result = audited("corrupted-label", {"k": list(range(200)), "y": truth}, part, ["k"], override=override)
    given_labels = [t if o is None else o for t, o in zip(truth, override, strict=True)]
    for row, true in zip(result["transition"]["shares"], range(3), strict=True):
        given = Counter(g for g, t in zip(given_labels[:150], truth[:150], strict=True) if t == true)
        assert row == pytest.approx([given[k] / given.total() for k in range(3)], abs=5e-5)
    labels = add_given_labels(result)["labels"]
    shares = {str(k): given_labels[:150].count(k) / 150 for k in range(3)}
    assert labels["given"]["shares"] == pytest.approx(shares, abs=2e-4)
    apart = sum(abs(shares[str(k)] - truth[150:].count(k) / 50) for k in range(3)) / 2
    assert labels["given"]["total_variation"]["id_test"] == pytest.approx(apart, abs=3e-4)
    wrong = sum(g != t for g, t in zip(given_labels[:150], truth[:150], strict=True))
    assert result["noise"]["train"] == {
        "overridden": 50,
        "wrong": wrong,
        "overridden_rate": round(50 / 150, 4),
        "true_rate": round(wrong / 150, 4),
    }


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2).filter(lambda r: len({p for _, p in r}) == 2))
def test_the_area_under_the_curve_is_that_of_scikit_learn(rows):
    scores, positive = zip(*rows, strict=True)
    expected = roc_auc_score(positive, scores)
    assert auroc(np.array(scores, float), np.array(positive)) == pytest.approx(expected)


def test_a_difference_of_the_stated_size_is_found_in_eighty_of_a_hundred_samples():
    rows = 4000
    difference = minimum_detectable_difference(rows)
    # Sign test on the rows where two models disagree in correctness, 10 % of all.
    discordant = round(rows * 0.1)
    share = 0.5 + difference / 0.1 / 2
    critical = int(binom.isf(0.025, discordant, 0.5))
    assert binom.sf(critical - 1, discordant, share) == pytest.approx(0.8, abs=0.03)


def test_words_and_wide_tensors_become_columns_of_bounded_number():
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{k}" for k in rng.integers(0, 500, 20)) for _ in range(40)]
    columns = {"q": texts, "x": rng.random((40, 300)).astype(np.float32), "y": ["0"] * 40}
    built = compute_features(rows_of("domain", columns, ["train"] * 40, ["q", "x"]), np.arange(40), 64)
    assert built.shape == (40, 128)
    # Signs keep the lengths of vectors on average.
    assert (built[:, :64] ** 2).sum() == pytest.approx((columns["x"] ** 2).sum(), rel=0.3)
    few = compute_features(rows_of("domain", columns, ["train"] * 40, ["x"]), np.arange(40), 400)
    assert np.sort(few.sum(1)) == pytest.approx(np.sort(columns["x"].sum(1)))


def test_two_audits_agree_within_rounding_and_not_beyond():
    item = {"a": [0.5, 1], "b": {"c": "x", "d": 10_000.0}}
    assert is_same_audit(item, {"a": [0.5015, 1], "b": {"c": "x", "d": 10_000.009}})
    assert not is_same_audit(item, {"a": [0.503, 1], "b": {"c": "x", "d": 10_000.0}})
    assert not is_same_audit(item, {"a": [0.5, 2], "b": {"c": "x", "d": 10_000.0}})
    assert not is_same_audit(item, {"a": [0.5], "b": {"c": "x", "d": 10_000.0}})
    assert not is_same_audit(item, {"a": [0.5, 1], "b": {"c": "y", "d": 10_000.0}})


def test_a_large_part_is_thinned_for_what_costs_memory_and_rare_words_are_still_known(monkeypatch):
    """Every training row has a word of its own, and the test repeats them: no draw may call them unseen."""
    # The package's names are its functions: the modules of these names are asked for as such.
    for name, limit in (("texts._ROWS", 50), ("texts._CHUNK", 64), ("texts._AMONG", 50)):
        file, attribute = name.split(".")
        monkeypatch.setattr(import_module(f"farshift.splits.audit.{file}"), attribute, limit)
    train = [f"word{row} and word{row + 1}" for row in range(300)]
    test = [f"word{row} or word{row + 1}" for row in range(100)] + ["nobody or word7"]
    columns = {"text": train + test, "y": [0] * 401}
    result = audited("compositional", columns, ["train"] * 300 + ["ood_test"] * 101, ["text"])
    assert result["texts"]["text"]["ood_test"]["unseen_tokens"] == 2, "`or` and `nobody`"
    assert result["texts"]["text"]["sampled"] == 50
    assert result["near_duplicates"]["among"] == {"train": 50, "ood_test": 50}


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["train", "id_val", "ood_test", ""])), min_size=1))
def test_equal_inputs_are_counted_alike_whether_the_source_names_them_or_not(drawn):
    x, part = map(list, zip(*drawn, strict=True))
    rows = rows_of("domain", {"x": x, "y": [0] * len(x)}, part, ["x"])
    shared = np.array([value for value in x if x.count(value) > 1], np.int64)
    names = rows.table["row_id"].filter(pc.is_in(rows.table["x"], pa.array(shared))).to_numpy()
    named = replace(rows, table=mark_repeated_inputs(rows.table, names))
    assert read_repeated_inputs(named.table) is not None
    assert count_duplicate_inputs(named) == count_duplicate_inputs(rows)
    locked = {name: [value for value, its in drawn if its == name] for name in rows.names}
    assert count_duplicate_inputs(rows)["within"] == {name: len(its) - len(set(its)) for name, its in locked.items()}
    assert count_duplicate_inputs(rows)["across"] == {
        f"{a}/{b}": len(set(locked[a]) & set(locked[b])) for a, b in combinations(locked, 2)
    }


TEXTS = st.lists(st.text(st.sampled_from("ab \t"), max_size=8), max_size=9)


@given(TEXTS, st.integers(1, 4))
def test_words_are_those_of_python_whatever_the_pieces(texts, piece):
    table = pa.table({"text": pa.array(texts, pa.string())})
    with patch("farshift.splits.measures.words._PIECE", piece):
        assert count_words(table, "text").tolist() == [len(text.split()) for text in texts]


@given(st.lists(st.lists(st.sampled_from(["a", "ab", "b"]), max_size=5), max_size=6), st.integers(1, 4))
def test_a_word_is_counted_where_it_stands_alone(rows, piece):
    table = pa.table({"text": pa.array([" ".join(row) for row in rows], pa.string())})
    with patch("farshift.splits.measures.words._PIECE", piece):
        assert count_occurrences(table, "text", "a").tolist() == [row.count("a") for row in rows]


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
