"""Words of a text column, counted piece by piece."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
from farshift.splits.measures.words import count_occurrences, count_words
from hypothesis import given
from hypothesis import strategies as st

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
