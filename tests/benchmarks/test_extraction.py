"""Extractions: what is read out of free text, and what is not."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from farshift.benchmarks.extraction import load_extraction
from farshift.benchmarks.model import Task
from farshift.benchmarks.settings import MAX_TEXT
from farshift.core.errors import BadDefinition
from farshift.core.plugins import find_files_by_name, load_module
from hypothesis import given
from hypothesis import strategies as st

WORDS = Task("sequence", ("x",), "y")
NUMBER = Task("regression", ("x",), "y")
PETS = Task("classification", ("x",), "y", classes=3, names=("cat", "wild cat", "C++"))
DIGITS = Task("classification", ("x",), "y", classes=10)
TASKS = {"sequence": WORDS, "regression": NUMBER, "classification": PETS}


def read(name, text, task, version=None):
    """What an extraction reads, by its newest version; what older versions read stays as it was."""
    newest = load_module("benchmarks/extraction", name, "extraction").VERSION
    return load_extraction(name, version or newest, task)(text, task)


@pytest.mark.parametrize("name", sorted(find_files_by_name("benchmarks/extraction", ".py")))
@given(text=st.text() | st.text("0123456789.,+-eE *\nanswer:ct") | st.text("٣²½⑤\u2212 5"))
def test_whatever_the_text_an_answer_is_one_of_the_task_or_none(name, text):
    for kind, task in TASKS.items():
        if name == "class_name" and kind != "classification":
            continue
        result = read(name, text, task)
        if kind == "classification":
            assert result is None or (type(result) is int and 0 <= result < 3)
        elif kind == "regression":
            assert result is None or (type(result) is float and abs(result) < float("inf"))
        else:
            assert result is None or (type(result) is str and result == result.strip() != "")


@pytest.mark.parametrize(
    ("name", "text", "answer"),
    [
        ("whole", "  WALK RUN \n", "WALK RUN"),
        ("whole", "a\nb", "a\nb"),
        ("whole", " \n", None),
        ("whole", "x" * (MAX_TEXT + 1), None),
        ("first_line", "\n  \nWALK \nbecause", "WALK"),
        ("first_line", "", None),
        ("after_marker", "Answer: 1? No.\nANSWER: WALK RUN\n", "WALK RUN"),
        ("after_marker", "So **Answer:** WALK", "WALK"),
        ("after_marker", "WALK", None),
        ("after_marker", "the answer is WALK", None),
        ("after_marker", "Answer:  ", None),
        ("after_marker", "nonanswer: WALK", None),
    ],
)
def test_texts_are_read(name, text, answer):
    assert read(name, text, WORDS) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("3 + 4 = 7", "7"),
        ("it costs $1,234.50.", "1234.5"),
        ("1,234,567", "1234567"),
        ("between 1,23 and 4", "4"),
        ("1,2345", "2345"),
        ("12345,678", "678"),
        ("x = -3", "-3"),
        ("x = \u22123", "-3"),
        ("10-5", "5"),
        ("f(2)-3", "3"),
        ("(-3)", "-3"),
        ("-0.00", "0"),
        ("+18.00", "18"),
        ("007", "7"),
        ("3.14.", "3.14"),
        ("version 1.2.3", "3"),
        ("it is .5", "0.5"),
        ("9" * 60, "9" * 60),
        ("none", None),
        ("½", None),
    ],
)
def test_the_last_number_is_read_as_people_write_numbers(text, answer):
    assert read("last_number", text, WORDS) == answer
    assert read("last_number", text, NUMBER) == (None if answer is None else float(answer))


@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12), st.booleans()
)
def test_any_number_is_read_back_with_or_without_thousands_separators(number, separators):
    text = f"so we get {number:,f}." if separators else f"so we get {number:f}."
    assert read("last_number", text, NUMBER) == float(number)
    assert Decimal(read("last_number", text, WORDS)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_as_prompts_show_it_is_read_back_to_the_bit(number):
    for name in ("last_number", "whole", "first_line"):
        assert read(name, f" {number}\n", NUMBER) == number


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "1e999", "1_000", "five", "٣", "0x10"])
def test_what_is_no_finite_number_is_no_answer(text):
    assert read("whole", text, NUMBER) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("cat", 0),
        (" Wild Cat. ", 1),
        ("**c++**.", 2),
        ("2", 2),
        ("3", None),
        ("-1", None),
        ("a cat", None),
        ("1.0", None),
    ],
)
def test_a_class_is_given_by_its_name_or_its_index(text, answer):
    for name in ("whole", "first_line"):
        assert read(name, text, PETS) == answer


def test_an_index_is_no_answer_where_classes_are_called_by_numbers():
    years = Task("classification", ("x",), "y", classes=3, names=("1", "2", "3"))
    assert read("whole", "1", years) == 0
    assert read("whole", "0", years) is None


def test_names_that_differ_in_case_alone_are_told_apart_by_case():
    letters = Task("classification", ("x",), "y", classes=3, names=("a", "A", "B"))
    assert [read("whole", text, letters) for text in ("a", "A", "b")] == [0, 1, 2]
    assert read("class_name", "it is A", letters) is None


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("I say CAT, yes, cat.", 0),
        ("that is a wild cat", 1),
        ("a cat or a wild cat", None),
        ("(c++)!", 2),
        ("scatter, cats, c++x, cat-like", None),
        ("dog", None),
        ("", None),
    ],
)
def test_the_only_class_mentioned_is_the_answer(text, answer):
    assert read("class_name", text, PETS) == answer


@given(st.lists(st.sampled_from(["3", "7", "-3", "3.5", "33", "x3", "so", "7."]), max_size=6))
def test_a_class_without_a_name_is_mentioned_by_its_number_as_a_whole_word(words):
    mentioned = {re.sub(r"\.$", "", word) for word in words} & {"3", "7"}
    expected = int(mentioned.pop()) if len(mentioned) == 1 else None
    assert read("class_name", " ".join(words), DIGITS) == expected


def names(*given):
    return Task("classification", ("x",), "y", classes=len(given), names=given)


TOXIC, CIVIL = names("toxic", "non-toxic"), names("toxic", "civil")
LOGIC, ENTAILED = names("entailment", "neutral", "contradiction"), names("entailment", "not_entailment")


@pytest.mark.parametrize(
    ("text", "task", "answer"),
    [
        *((text, TOXIC, "toxic") for text in ("Toxic.", "**toxic**\u2014very", "not only toxic", "no doubt it is toxic")),
        *(
            (text, TOXIC, "non-toxic")
            for text in ("non-toxic", "non toxic", "Non\u2011Toxic", "non\u2010toxic", "non\u2013toxic", "nontoxic", "non\u00adtoxic")
        ),
        *((text, TOXIC, "non-toxic") for text in ("not toxic", "It isn\u2019t toxic.", 'not "toxic"', "not at all a toxic comment")),
        *((text, TOXIC, None) for text in ("not non-toxic", "I am not sure if toxic", "toxic or non-toxic")),
        ("not toxic", CIVIL, None),
        ("non\u2011toxic", CIVIL, None),
        ("It is not toxic; it is civil", CIVIL, "civil"),
        ("not spam but ham", names("spam", "ham"), "ham"),
        ("No.", names("yes", "no"), "no"),
        ("no, not yes", names("yes", "no"), "no"),
        ("neither entailment nor contradiction, so neutral", LOGIC, "neutral"),
        ("not entailment", ENTAILED, "not_entailment"),
        ("not_entailment", ENTAILED, "not_entailment"),
        ("It does not follow, so entailment is out", ENTAILED, "entailment"),
        ("wild cat", names("wild-cat", "wild_cat", "cat"), "cat"),
        ("wild_cat", names("wild-cat", "wild_cat", "cat"), "wild_cat"),
        ("not 3 but 7", DIGITS, 7),
    ],
)  # fmt: skip
def test_a_class_that_is_negated_is_not_the_answer_and_dashes_are_one(text, task, answer):
    result = read("class_name", text, task)
    assert (task.names[result] if result is not None and task.names else result) == answer


@pytest.mark.parametrize(
    ("text", "answer"), [("x = \u20135", "-5"), ("3\u20135", "5"), ("\uff0d7", "-7"), ("it is 12\u201434", "34")]
)
def test_a_minus_may_be_any_short_dash(text, answer):
    assert read("last_number", text, WORDS) == answer


def test_benchmarks_that_name_an_older_version_are_read_as_before():
    assert read("class_name", "non\u2011toxic", TOXIC, version=1) == 0
    assert read("class_name", "not toxic", TOXIC, version=1) == 0
    assert read("last_number", "x = \u20135", WORDS, version=1) == "5"
    with pytest.raises(BadDefinition, match="class_name@3 is required, but version 2 is installed"):
        read("class_name", "toxic", TOXIC, version=3)


@pytest.mark.parametrize("name", ["class_name", "last_number"])
@given(
    text=st.text("0123456789.,+-eE x\n")
    | st.lists(st.sampled_from(["cat", "wild", "C++", "so", "3.", "7?"])).map(" ".join)
)
def test_versions_differ_on_negations_and_dashes_alone(name, text):
    for task in (PETS, DIGITS) if name == "class_name" else TASKS.values():
        assert read(name, text, task) == read(name, text, task, version=1)
