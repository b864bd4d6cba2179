"""Rewriting by a rule that the input states: each answer is right, and rules are as many and as new as is said."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import load
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import string_rewriting
from hypothesis import given
from hypothesis import strategies as st

texts = st.text("ab", min_size=2, max_size=12)
sides = st.text("ab", min_size=2, max_size=2)


@given(sides, sides, texts)
def test_a_step_replaces_the_leftmost_occurrence(left, right, text):
    result = string_rewriting.apply_rule(left, right, text)
    at = next((position for position in range(len(text)) if text[position : position + 2] == left), None)
    assert result == (text if at is None else text[:at] + right + text[at + 2 :])


def test_rules_have_a_number_each_and_two_sides():
    every = string_rewriting.list_rules("t", np.arange(26**2 * (26**2 - 1)))
    assert len(set(every)) == len(every) == 456_300
    assert all(left != right for left, right in every)


@pytest.mark.parametrize(("name", "rules"), [("10", 10), ("100", 100), ("1000", 1000)])
def test_training_has_as_many_rules_as_the_split_is_named_after_and_the_test_none_of_them(name, rules):
    result = {part: load(f"string_rewriting/rules_{name}", part).arrow() for part in ("train", "id_test", "ood_test")}
    known = set(result["train"]["rule"].to_pylist())
    assert len(known) == rules
    assert set(result["id_test"]["rule"].to_pylist()) <= known
    assert not known & set(result["ood_test"]["rule"].to_pylist())
    assert not set(result["train"]["question"].to_pylist()) & set(result["id_test"]["question"].to_pylist())
    for row in result["ood_test"].slice(0, 200).to_pylist():
        rule, text = (part.replace(" ", "") for part in row["question"].split(" : "))
        left, right = rule.split(">")
        assert row["answer"].replace(" ", "") == text.replace(left, right, 1)
        assert row["occurs"] == ("yes" if left in text else "no")
    occurs = result["train"]["occurs"].to_pylist().count("yes") / result["train"].num_rows
    assert 0.74 < occurs < 0.78


def test_texts_that_cannot_hold_a_side_are_refused():
    with pytest.raises(BadDefinition, match="at least 2 letters"):
        string_rewriting.rows(
            seed="t", shortest=1, longest=4, regimes=[{"regime": "a", "rows": 2, "first": 0, "rules": 1}]
        )
