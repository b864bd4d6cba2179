"""Messages count one thing as one and offer the names that there are; of the text of strangers nothing is left that would
be obeyed or hidden."""

from __future__ import annotations

import json
import unicodedata

import farshift as fs
import pytest
from farshift.core.errors import suggest_names
from farshift.core.text import LINES, escape_untrusted, escape_untrusted_json, format_count
from hypothesis import given
from hypothesis import strategies as st
from made_runs import ON
from support import one_line_error

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


KNOWN = ["cogs/depth", "cogs/length", "dominoes/complete", "geoquery/template", "scan/jump", "scan/length", "scan/mcd1"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("scan/lenght", "did you mean scan/length?"),
        ("scna/length", "did you mean scan/length?"),
        ("scan", "choose from scan/jump, scan/length, scan/mcd1"),
        ("scan/", "choose from scan/jump, scan/length, scan/mcd1"),
        ("scan/primitives", "choose from scan/jump, scan/length, scan/mcd1"),
        ("scam", "did you mean scan/..?"),
        ("geoquerry/split", "did you mean geoquery/..?"),
        ("geoquerry/templat", "did you mean geoquery/template?"),
        ("own/length", f"choose from {', '.join(KNOWN)}"),
        ("own/empty", f"choose from {', '.join(KNOWN)}"),
    ],
)
def test_names_are_guessed_within_their_family_and_never_far_off(name, told):
    assert suggest_names(name, KNOWN) == told


def test_a_name_that_another_one_begins_with_is_offered_that_one():
    assert suggest_names("ood", ["id_test", "ood_test", "train"]) == "did you mean ood_test?"


def test_names_that_are_too_many_for_a_line_come_with_the_command_that_lists_them():
    many = [f"noise/rate_{number:02}" for number in range(20)]
    assert suggest_names("noise", [*many, "scan/length"], "farshift splits list").endswith(
        ", noise/rate_11 and 8 more (all of them: farshift splits list noise)"
    )
    assert suggest_names("zzz", many, "farshift splits list") == "farshift splits list lists all 20"
    assert (
        suggest_names("zzz", many[:3], "farshift splits list")
        == "choose from noise/rate_00, noise/rate_01, noise/rate_02"
    )


@pytest.mark.parametrize(
    "listed", [("splits", "show"), ("splits", "pull"), ("splits", "verify"), ("benchmarks", "show")]
)
def test_the_name_of_a_source_is_answered_with_all_of_it(command, listed):
    output = one_line_error(command(*listed, "scan"))
    assert "named 'scan': choose from scan/addprim_jump, " in output
    assert f" more (all of them: farshift {listed[0]} list scan)" in output
