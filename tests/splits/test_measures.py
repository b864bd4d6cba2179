"""Measures of splits against published numbers, brute force, closed forms and laws: divergence, coverage, invariance,
inductive bias."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from farshift import FarshiftError
from farshift.baselines.reproduce.facts import compute_fact
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import interventions
from farshift.loaders.readers.parses import parse_funql
from farshift.splits.measures.coverage import count_rows_to_cover, find_covered
from farshift.splits.measures.divergence import chernoff_coefficient, find_runs, measure_divergence, split_words
from farshift.splits.measures.inductive_bias import compute_bits, compute_cumulants, condition_process
from farshift.splits.measures.invariance import list_sets, measure_broken_share, measure_gaps
from hypothesis import given
from hypothesis import strategies as st
from published_files import published_file, published_rows
from scipy.stats import chi2, norm

COUNTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12).filter(
    lambda pairs: any(p for p, _ in pairs) and any(q for _, q in pairs)
)
TEXTS = st.lists(st.lists(st.sampled_from("abcd"), max_size=6).map(" ".join), max_size=6)


@given(COUNTS, st.sampled_from([0.1, 0.5, 0.9]))
def test_the_chernoff_coefficient_is_the_sum_that_defines_it(pairs, alpha):
    p, q = zip(*pairs, strict=True)
    expected = sum((a / sum(p)) ** alpha * (b / sum(q)) ** (1 - alpha) for a, b in pairs)
    assert chernoff_coefficient(p, q, alpha) == pytest.approx(expected)
    assert 0 <= chernoff_coefficient(p, q, alpha) <= 1 + 1e-12


@given(COUNTS, st.floats(0.01, 0.99))
def test_exchanging_the_sides_exchanges_the_exponents(pairs, alpha):
    p, q = zip(*pairs, strict=True)
    assert chernoff_coefficient(p, q, alpha) == pytest.approx(chernoff_coefficient(q, p, 1 - alpha))
    assert chernoff_coefficient(p, p, alpha) == pytest.approx(1)


def test_disjoint_distributions_have_coefficient_zero_and_scale_does_not_matter():
    assert chernoff_coefficient([1, 0], [0, 3], 0.5) == 0
    assert chernoff_coefficient([1, 3], [2, 2], 0.1) == pytest.approx(chernoff_coefficient([10, 30], [0.5, 0.5], 0.1))


@pytest.mark.parametrize(
    ("p", "q", "alpha", "says"),
    [
        ([1, 2], [1], 0.5, "equal length"),
        ([1, -1], [1, 1], 0.5, "none negative"),
        ([0, 0], [1, 1], 0.5, "not all zero"),
        ([1, float("nan")], [1, 1], 0.5, "none negative"),
        ([1], [1], 1.0, "alpha = 1.0"),
    ],
)
def test_what_is_no_distribution_is_refused_in_one_line(p, q, alpha, says):
    with pytest.raises(FarshiftError, match=says) as caught:
        chernoff_coefficient(p, q, alpha)
    assert "\n" not in str(caught.value)


def test_words_and_neighbouring_words_are_what_texts_consist_of_unless_told_otherwise():
    result = measure_divergence(["walk left", "jump"], ["jump left"])
    assert str(result).startswith(f"Divergence(atoms={round(result.atoms, 3)}, compounds=1.0, ")
    assert result.unseen_atoms == 0
    assert result.unseen_compounds == 1
    assert result.compounds == 1
    letters = measure_divergence(["ab"], ["ba"], atoms=list, compounds=pairwise)
    assert letters.atoms == pytest.approx(0)
    assert letters.compounds == 1


def test_texts_without_compounds_cannot_diverge_in_them():
    with pytest.raises(FarshiftError, match="the test texts contain no compound"):
        measure_divergence(["a b"], ["a"])


@given(TEXTS, st.integers(1, 4))
def test_the_runs_of_a_column_are_those_of_its_texts_and_no_others(texts, length):
    column = pa.chunked_array([texts[:2], texts[2:]], pa.string())
    result = find_runs(split_words(column), length)
    assert result.rows == len(texts)
    expected = [(row, run) for row, text in enumerate(texts) for run in _runs(text.split(), length)]
    assert result.row.tolist() == [row for row, _ in expected]
    meaning = dict(zip(result.code.tolist(), [run for _, run in expected], strict=True))
    assert [meaning[code] for code in result.code.tolist()] == [run for _, run in expected]
    assert result.kinds == len(set(meaning.values())) == len({run for _, run in expected})
    some = np.arange(len(texts)) % 2 == 0
    counted = Counter(run for row, run in expected if some[row])
    assert {meaning[code]: n for code, n in enumerate(result.counts(some).tolist()) if n} == counted


def _runs(tokens: list[str], length: int) -> Iterator[tuple[str, ...]]:
    return zip(*(tokens[k:] for k in range(length)), strict=False)


def _applications(query: str) -> list[tuple[str, int, int, str]]:
    """A function, its number of arguments, and what stands at one of them: a compound of Shaw et al. 2021."""

    def walk(term):
        for position, argument in enumerate(term.arguments):
            yield term.symbol, len(term.arguments), position, argument.symbol
            yield from walk(argument)

    return list(walk(parse_funql(query)))


@pytest.mark.parametrize(
    ("split", "published", "unseen"),
    [("standard", 0.027, 3), ("template_1", 0.075, 6), ("length_1", 0.170, 11), ("tmcd_1", 0.190, 0)],
)
def test_compound_divergences_of_geoquery_are_the_published_ones(split, published, unseen):
    """Shaw et al. 2021, table 2."""
    lists, rows = json.loads(published_file(f"geoquery/splits/{split}.json").read_text()), published_rows("geoquery")
    queries = dict(zip(rows["number"].to_pylist(), rows["funql"].to_pylist(), strict=True))
    train, test = ([queries[number] for number in lists[part]] for part in ("train", "test"))
    result = measure_divergence(train, test, atoms=lambda text: re.findall(r"[^(), ]+", text), compounds=_applications)
    assert round(result.compounds, 3) == published
    assert result.unseen_atoms == unseen


@pytest.mark.parametrize(
    ("split", "pairs", "triples"), [("mcd1", 0.050, 0.341), ("mcd2", 0.020, 0.314), ("mcd3", 0.051, 0.347)]
)
def test_scan_mcd_diverges_in_its_triples_of_words_while_its_atoms_hardly_do(split, pairs, triples):
    commands = [
        [
            line.split(" OUT: ")[0].removeprefix("IN: ")
            for line in published_file(f"scan/mcd_split/tasks_{part}_{split}.txt").read_text("utf-8").splitlines()
        ]
        for part in ("train", "test")
    ]
    result = measure_divergence(*commands)
    assert result.atoms < 0.02
    assert result.compounds == pytest.approx(pairs, abs=0.0005)
    longer = measure_divergence(*commands, compounds=lambda text: list(_runs(text.split(), 3)))
    assert longer.compounds == pytest.approx(triples, abs=0.0005)


def by_search(train: np.ndarray, asked: np.ndarray, evidence: int) -> list[bool]:
    """The same, one fragment after another."""
    contexts: dict[tuple[int, int], set[int]] = {}
    for state, fragment, context in train.tolist():
        contexts.setdefault((state, fragment), set()).add(context)
    result = []
    for state, fragment, context in asked.tolist():
        reached, waiting = {(state, fragment)}, [(state, fragment)]
        while waiting:
            item = waiting.pop()
            for other in contexts.keys() - reached:
                if other[0] == state and len(contexts[other] & contexts.get(item, set())) >= evidence:
                    reached.add(other)
                    waiting.append(other)
        result.append(any(context in contexts.get(item, set()) for item in reached))
    return result


def test_a_fragment_is_exchanged_for_one_that_acts_alike_in_enough_contexts() -> None:
    train = np.array([[0, 1, 5], [0, 1, 6], [0, 2, 6], [0, 2, 7], [0, 3, 7], [0, 3, 8], [1, 4, 5], [1, 4, 9]])
    requested = np.array([[0, 1, 8], [0, 2, 5], [0, 1, 9], [1, 4, 6], [0, 9, 5], [1, 4, 5]])
    assert find_covered(train, requested, 1).tolist() == [True, True, False, False, False, True]
    assert find_covered(train, requested, 2).tolist() == [False, False, False, False, False, True]
    with pytest.raises(BadDefinition, match="evidence = 0"):
        find_covered(train, requested, 0)


@pytest.mark.parametrize(("evidence", "count"), [(1, 40), (2, 70), (3, 100)])
def test_coverage_is_what_a_search_finds(evidence: int, count: int) -> None:
    rng = np.random.default_rng(evidence)
    rows = rng.permutation(np.stack(np.meshgrid(range(4), range(7), range(9)), axis=-1).reshape(-1, 3))
    result = find_covered(rows[:count], rows, evidence)
    assert result.tolist() == by_search(rows[:count], rows, evidence)
    assert count < result.sum() < len(rows)


def test_the_fewest_rows_that_cover_are_enough_and_one_less_is_not() -> None:
    rows = np.random.default_rng(0).permutation(np.stack(np.meshgrid(range(3), range(6), range(8)), -1).reshape(-1, 3))
    for share in (0.5, 0.9, 1.0):
        count = count_rows_to_cover(rows, share, 2)
        shares = [find_covered(rows[:some], rows, 2).mean() for some in (count - 1, count)]
        assert shares[0] < share <= shares[1]


def test_rows_with_a_hop_that_training_has_not_are_not_covered() -> None:
    of = {"state": "bridge", "fragment": "x1,x2", "context": "x3", "evidence": 1}
    assert compute_fact("coverage", "coverage/n10000", of | {"part": "train"}) == 1
    assert compute_fact("coverage", "coverage/n10000", of | {"part": "ood_test"}) == 0


def test_growth_is_of_two_hops_in_a_chain() -> None:
    requested = {"tokens": [6, 12], "evidence": 1, "share": 0.9}
    assert 1 < float(compute_fact("growth_of_rows_to_cover", "coverage/n10000", requested)) < 4
    with pytest.raises(BadDefinition, match="coverage_non_tree/n10000 has non_tree"):
        compute_fact("growth_of_rows_to_cover", "coverage_non_tree/n10000", requested)


FAMILY = {"environment": "f", "draws": 6, "sites": 2, "rows": 30, "on": [5, 6, 7], "shift": [2.0, 4.0]}
FAMILY |= {"scale": [1.0, 3.0], "hard": False}


def make_environment(seed: int, shift: float, rows: int = 4000):
    """x0 causes y with weight 2, and y causes x1, which is shifted."""
    noise = np.random.default_rng(seed).normal(size=(3, rows))
    y = 2 * noise[0] + noise[1]
    return np.column_stack([noise[0], y + shift + 0.1 * noise[2]]), y


def test_a_gap_is_the_excess_of_pooled_weights_over_an_environments_own():
    fitted = [make_environment(0, 0.0, 50), make_environment(1, 3.0, 80)]
    measured = make_environment(2, -2.0, 40)
    x, y = (np.concatenate([environment[side] for environment in fitted]) for side in (0, 1))

    def risk(design, target):
        weights, *_ = np.linalg.lstsq(np.c_[design, np.ones(len(design))], target, rcond=None)
        return np.mean((np.c_[measured[0], np.ones(40)] @ weights - measured[1]) ** 2)

    assert measure_gaps(fitted, [[0, 1]], [measured])[0, 0] == pytest.approx(risk(x, y) - risk(*measured))


def test_only_the_cause_stays_invariant_where_its_effect_is_shifted():
    train, test = [make_environment(0, 0.0), make_environment(1, 0.1)], [make_environment(2, 5.0)]
    gaps = dict(zip(["x0", "x1", "both"], measure_gaps(train, list_sets(2), test)[:, 0], strict=True))
    assert gaps["x0"] < 0.01 and gaps["x1"] > 1 and gaps["both"] > 1
    assert measure_broken_share(train, test, 0.2) == pytest.approx(2 / 3)
    assert measure_broken_share([*train, make_environment(3, 5.0)], test, 0.2) == 0


def test_a_family_draws_its_interventions_within_its_bounds():
    table = interventions.rows(seed="t", environments=[FAMILY])
    names = table["environment"].to_pylist()
    assert names[::30] == [f"f {number}" for number in range(1, 7)] and set(table["family"].to_pylist()) == {"f"}
    drawn = interventions._draw_interventions("t", FAMILY)
    assert all(len(set(entry["on"])) == 2 and set(entry["on"]) <= {5, 6, 7} for entry in drawn)
    assert all(2 <= entry["shift"] < 4 and 1 <= entry["scale"] < 3 for entry in drawn)
    assert len({tuple(entry["on"]) for entry in drawn}) > 1
    with pytest.raises(BadDefinition, match="sites = 4"):
        interventions.rows(seed="t", environments=[FAMILY | {"sites": 4}])


def test_of_one_row_the_bits_are_those_of_a_normal_interval():
    for bias, deviation, target in ((0.0, 1.0, 0.1), (0.7, 0.5, 0.04), (2.0, 0.3, 1.0)):
        edge = target**0.5
        chance = norm.cdf((edge - bias) / deviation) - norm.cdf((-edge - bias) / deviation)
        assert compute_bits(np.array([bias]), np.array([[deviation**2]]), target) == pytest.approx(
            -np.log2(chance), rel=1e-4
        )


def test_of_equal_rows_the_bits_are_those_of_a_chi_squared():
    bits = compute_bits(np.zeros(6), 0.3 * np.eye(6), 0.05)
    assert bits == pytest.approx(-chi2.logcdf(0.05 * 6 / 0.3, 6) / np.log(2), rel=1e-4)


def test_cumulants_are_those_of_drawn_errors():
    random = np.random.default_rng(0)
    factor, bias = random.normal(size=(4, 4)), random.normal(size=4)
    errors = ((bias + random.normal(size=(400_000, 4)) @ factor.T) ** 2).mean(1)
    expected = errors.mean(), errors.var(), ((errors - errors.mean()) ** 3).mean()
    assert compute_cumulants(bias, factor @ factor.T) == pytest.approx(expected, rel=0.05)


def test_the_bits_are_those_of_the_fraction_of_drawn_hypotheses():
    random = np.random.default_rng(1)
    train, queries = random.normal(size=(12, 2)), random.normal(size=(8, 2))
    truth = np.sin(train[:, 0]), np.sin(queries[:, 0])
    mean, covariance = condition_process(train, truth[0], queries, 1.0)
    factor = np.linalg.cholesky(covariance + 1e-9 * np.eye(8))
    errors = ((mean - truth[1] + random.normal(size=(400_000, 8)) @ factor.T) ** 2).mean(1)
    for quantile in (0.5, 0.1, 0.02):
        target = float(np.quantile(errors, quantile))
        assert compute_bits(mean - truth[1], covariance, target) == pytest.approx(-np.log2(quantile), rel=0.25)


def test_hypotheses_are_right_on_training_rows():
    random = np.random.default_rng(2)
    train, labels = random.normal(size=(10, 3)), random.normal(size=10)
    mean, covariance = condition_process(train, labels, train, 1.0)
    assert mean == pytest.approx(labels, abs=1e-3)
    assert np.abs(covariance).max() < 1e-3


def test_a_lower_target_error_needs_more_bits():
    bits = [compute_bits(np.full(5, 0.5), 0.2 * np.eye(5), target) for target in (1.0, 0.5, 0.1, 0.01)]
    assert bits == sorted(bits)
    assert bits[0] < 0.1


def test_a_tail_too_thin_for_a_float_still_has_finite_bits_that_grow():
    far = [compute_bits(np.full(50, bias), 0.01 * np.eye(50), 0.1) for bias in (2.0, 3.0, 6.0)]
    # Of equal rows with a bias the nearest point of the ball decides: about m (bias - sqrt(target))^2 / (2 s^2) nats.
    assert far == sorted(far)
    nats = [50 * (bias - 0.1**0.5) ** 2 / 0.02 for bias in (2.0, 3.0, 6.0)]
    assert np.array(far) * np.log(2) == pytest.approx(nats, rel=0.5)
