"""Text of strangers as a terminal or a page shows it: nothing is left that would be obeyed or hidden."""

from __future__ import annotations

import json
import unicodedata

import pytest
from farshift.core.text import LINES, escape_untrusted, escape_untrusted_json
from hypothesis import given
from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=()))
OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")


@given(texts)
def test_nothing_is_left_that_is_obeyed_or_hidden(text):
    assert not any(unicodedata.category(item) in OBEYED for item in escape_untrusted(text))
    assert not any(unicodedata.category(item) in OBEYED and item not in LINES for item in escape_untrusted(text, LINES))


@given(texts)
def test_what_can_be_seen_stays_as_it_is(text):
    seen = "".join(item for item in text if unicodedata.category(item) not in OBEYED)
    assert escape_untrusted(seen) == seen


@given(texts)
def test_a_json_document_says_the_same(text):
    shown = escape_untrusted_json(json.dumps({"name": text}, indent=1, ensure_ascii=False))
    assert json.loads(shown) == {"name": text}
    assert not any(unicodedata.category(item) in OBEYED and item not in LINES for item in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("\x9b31m", "\\x9b31m"),
        ("good\nboard: 1 entry: 1 verified", "good\\nboard: 1 entry: 1 verified"),
        ("abc\u202edef", "abc\\u202edef"),
        ("ab\u200bc", "ab\\u200bc"),
        ("\U000e0041", "\\U000e0041"),
        ("\udc9b", "\\udc9b"),
        ("naïve 学 🙂 a\xa0b", "naïve 学 🙂 a\xa0b"),
    ],
)
def test_what_is_not_shown_is_written_out(text, shown):
    assert escape_untrusted(text) == shown
