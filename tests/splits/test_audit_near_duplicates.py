"""Near duplicates: found where a brute-force comparison finds them, and nowhere else."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from audited import audited
from farshift.splits.measures.near_duplicates import RESEMBLANCE, make_shingles, measure_max_overlap
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.lists(st.lists(st.sampled_from("abc"), max_size=8).map(" ".join), min_size=1, max_size=8)
WORDS = [f"w{k}" for k in range(400)]


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return set(zip(words, words[1:], words[2:], strict=False)) if len(words) > 2 else {tuple(text.strip().split(" "))}


def jaccard(one: str, other: str) -> float:
    left, right = shingles(one), shingles(other)
    return len(left & right) / len(left | right)


def drawn(rows: int, seed: int) -> list[str]:
    return [" ".join(row) for row in np.random.default_rng(seed).choice(WORDS, (rows, 30))]


def column(texts: list[str]) -> pa.ChunkedArray:
    return pa.chunked_array([texts])


@given(TEXTS)
def test_the_resemblance_of_two_texts_is_that_of_their_sets_of_three_words(texts):
    result = make_shingles(column(texts))
    item, other = map(np.array, zip(*product(range(len(texts)), repeat=2), strict=True))
    expected = [jaccard(texts[a], texts[b]) for a, b in zip(item, other, strict=True)]
    assert result.jaccard(item, other).tolist() == pytest.approx(expected)


@given(TEXTS)
def test_no_row_is_found_that_resembles_none(texts):
    result = make_shingles(column(texts)).resembling(np.arange(len(texts)), np.arange(len(texts)))
    close = [
        any(a != b and jaccard(texts[a], texts[b]) >= RESEMBLANCE for b in range(len(texts))) for a in range(len(texts))
    ]
    assert not (result & ~np.array(close)).any()


def test_of_two_thousand_texts_with_two_words_in_thirty_replaced_nearly_all_are_found():
    originals = drawn(2000, 0)
    # The last word takes part in one shingle of 28, the last but one in two.
    copies = [" ".join([*text.split()[:-2], "new", "words"]) for text in originals]
    assert min(map(jaccard, originals, copies)) >= RESEMBLANCE
    result = make_shingles(column(originals + copies)).resembling(np.arange(2000, 4000), np.arange(2000))
    assert result.mean() > 0.99


def test_unrelated_texts_are_not_found():
    result = make_shingles(column(drawn(2000, 1))).resembling(np.arange(1000), np.arange(1000, 2000))
    assert not result.any()


def test_a_template_shared_by_all_rows_costs_no_more_than_other_texts():
    texts = [f"the same sentence again and again until its end which is {k % 7}" for k in range(20_000)]
    result = make_shingles(column(texts)).resembling(np.arange(10_000), np.arange(10_000, 20_000))
    assert result.all()


def test_the_audit_counts_rows_that_resemble_rows_of_training():
    train = drawn(50, 2)
    copies = [text + " more" for text in train[:5]]
    texts = train + copies + drawn(15, 3)
    result = audited(
        "length", {"q": texts, "y": texts}, ["train"] * 50 + ["ood_test"] * 20, ["q"], severity=[1] * 50 + [2] * 20
    )
    assert result["near_duplicates"] == {
        "resemblance": 0.8,
        "sampled": {},
        "within": {"train": 0.0, "ood_test": 0.0},
        "with_train": {"ood_test": 0.25},
    }
    assert result["duplicate_inputs"]["across"] == {"train/ood_test": 0}


def tasks(*examples: list[str]) -> list[str]:
    return ["\n\n".join([*own, f"asked {position}"]) for position, own in enumerate(examples)]


def test_rows_that_share_their_examples_with_a_training_row_are_found_where_their_texts_do_not_resemble_it():
    train = tasks(["1 to 2", "3 to 4"], ["5 to 6", "7 to 8", "9 to 0"])
    test = ["\n\n".join(["7 to 8", "5 to 6", "asked"]), "\n\n".join(["3 to 4", "7 to 8", "2 to 1", "asked too"])]
    options = {"part": ["train"] * 2 + ["ood_test"] * 2, "inputs": ["q"], "severity": [1, 1, 2, 2]}
    columns = {"q": train + test, "y": list("abcd")}
    result = audited("length", columns, **options, examples="\n\n")
    assert result["near_duplicates"]["with_train"] == {"ood_test": 0.0}
    assert result["shared_examples"] == {"ood_test": {"any": 2, "half": 1}}
    assert not result["holds"]
    assert result["why"] == "1 row of ood_test with half of the examples or more in one row of training"
    plain = audited("length", columns, **options)
    assert plain["holds"]
    assert "shared_examples" not in plain


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), min_size=1, max_size=7), st.randoms())
def test_the_share_of_examples_is_that_of_the_nearest_training_row(rows, random):
    among = np.array([random.random() < 0.7 for _ in rows])
    result = measure_max_overlap(["|".join(row) for row in rows], "|", among)
    for position, row in enumerate(rows):
        others = [set(other) for at, other in enumerate(rows) if among[at] and at != position]
        assert result[position] == max((len(set(row) & other) for other in others), default=0) / len(set(row))


def test_in_a_large_split_a_sample_of_each_part_is_compared_with_all_of_training():
    rows = 50_100
    texts = [f"row number {k} alone" for k in range(rows)]
    texts[50_000:] = ["a text that stands in training too"] * 50 + [f"other rows of test {k}" for k in range(50)]
    texts[0] = "a text that stands in training too"
    part = ["train"] * 50_000 + ["ood_test"] * 100
    result = audited("length", {"q": texts, "y": texts}, part, ["q"], severity=[1] * 50_000 + [2] * 100)
    assert result["near_duplicates"]["sampled"] == {"train": 5000}
    assert result["near_duplicates"]["with_train"] == {"ood_test": 0.5}
