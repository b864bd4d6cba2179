"""A reader measures texts before it writes them out, without loading what it does not need."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from farshift.leaderboard.validation.reader import _measure_lengths
from hypothesis import given
from hypothesis import strategies as st


@given(
    words=st.lists(st.one_of(st.none(), st.text(max_size=5)), min_size=1, max_size=20),
    data=st.data(),
)
def test_the_bytes_of_each_text_are_counted_where_columns_are_cut_and_values_missing(words, data):
    places = data.draw(st.lists(st.one_of(st.none(), st.integers(0, len(words) - 1)), max_size=40))
    cut = data.draw(st.integers(0, len(places)))
    head = data.draw(st.integers(0, min(p for p in [len(words) - 1, *places] if p is not None)))
    # a dictionary that is itself a slice of a longer one, as a file that was read in pieces may give it
    dictionary = pa.array(words, pa.string()).slice(head)
    indices = pa.array([None if p is None else p - head for p in places], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, dictionary).slice(cut)
    texts = column.to_pylist()
    assert _measure_lengths(column).tolist() == [0 if text is None else len(text.encode()) for text in texts]
    assert _measure_lengths(column).dtype == np.int64
