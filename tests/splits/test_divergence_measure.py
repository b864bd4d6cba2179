"""Divergences: the published numbers, brute force, and the laws that a Chernoff coefficient keeps."""

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
from farshift.loaders.readers.parses import parse_funql
from farshift.splits.measures.divergence import chernoff_coefficient, find_runs, measure_divergence, split_words
from hypothesis import given
from hypothesis import strategies as st
from published_files import published_file, published_rows

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
