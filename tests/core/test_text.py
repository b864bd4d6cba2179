"""Messages count one thing as one; of the text of strangers nothing is left that would be obeyed or hidden."""

from __future__ import annotations

import json
import unicodedata

import farshift as fs
import pytest
from farshift.core.text import LINES, escape_untrusted, escape_untrusted_json, format_count
from hypothesis import given
from hypothesis import strategies as st
from made_runs import ON

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


def test_one_is_singular_and_more_or_none_plural():
    assert [format_count(number, "entry", "entries") for number in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
    assert format_count(1000, "row") == "1,000 rows"


def test_replicates_of_one_seed_are_over_one_seed(tmp_path):
    run = fs.evaluate(lambda seed: lambda batch: batch["a"], on=ON, seeds=1, out=tmp_path / "run")
    assert fs.replicates(run)["replicates"] == "1 seed"
