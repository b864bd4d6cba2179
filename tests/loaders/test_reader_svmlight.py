"""Sparse rows in SVMlight's format become texts of terms."""

from __future__ import annotations

import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers.lines import svmlight as read

OPTIONS = {"words": "terms", "label": "positive", "levels": ["-1", "1"]}


def some(tmp_path, **texts):
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def test_a_term_stands_as_often_as_it_was_counted_in_the_order_of_numbers(tmp_path):
    files = some(tmp_path, books="1 7:1 0:2\n-1 4:1\n-1\n", dvd="1 3:1\n")
    origin = {"published": {"books": "books train", "dvd": "dvd train"}}
    assert read(files, **OPTIONS, origin=origin).to_pydict() == {
        "terms": ["t0 t0 t7", "t4", "", "t3"],
        "positive": [1, 0, 0, 1],
        "published": ["books train"] * 3 + ["dvd train"],
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("1 0:1\n2 0:1\n", "books, line 2: begins with '2', which is not one of -1, 1"),
        ("1 0:1.5\n", "books, line 1: '0:1.5' is not a pair number:count"),
        ("1 0:1\n\n", "books, line 2: begins with ''"),
        ("<html>\n", "books, line 1: begins with '<html>'"),
    ],
)
def test_what_is_no_such_row_is_named_with_its_line(tmp_path, text, complaint):
    with pytest.raises(BadData, match=complaint):
        read(some(tmp_path, books=text), **OPTIONS)
