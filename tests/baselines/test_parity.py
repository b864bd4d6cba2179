"""Algorithms compute what their authors' released code computes: `parity/numbers/` has what that code made."""

import re

import pytest
from baseline_pages import NO_REFERENCE, list_missing_references, read_missing_reason
from farshift.baselines.recipe import find_plugin_files

from .parity.problems import of
from .parity.reference import Reference, largest, references

REFERENCES = references()


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda one: one.name)
def test_an_algorithm_computes_what_released_code_does(reference: Reference) -> None:
    assert largest(of(reference), reference.numbers) <= reference.within, reference.code


def test_each_reference_is_of_an_algorithm_and_says_where_its_numbers_come_from() -> None:
    assert len(REFERENCES) >= 20
    for item in REFERENCES:
        assert item.algorithm in find_plugin_files("algorithms"), item.name
        assert len(item.commit) == 40
        driver = (item.path.parents[1] / "drivers" / f"{item.driver}.py").read_text("utf-8")
        folder = re.search('^FOLDER = "(.*)"$', driver, re.MULTILINE)
        assert folder is None or item.code.startswith(f"{folder[1]}/")
        assert item.difference <= item.within


def test_every_algorithm_is_held_to_released_numbers_or_says_why_not() -> None:
    missing = list_missing_references({item.algorithm for item in REFERENCES})
    silent = [name for name, reason in missing.items() if not reason]
    assert silent == [], f"store numbers, or end the docstring with a paragraph '{NO_REFERENCE} ..'"


def test_an_algorithm_that_is_held_does_not_say_that_it_is_not() -> None:
    assert [
        item.algorithm for item in REFERENCES if read_missing_reason(find_plugin_files("algorithms")[item.algorithm])
    ] == []


def test_numbers_that_differ_in_value_shape_or_name_are_told_apart() -> None:
    assert largest({"a": [[1.0, 2.0], [3.0]]}, {"a": [[1.0, 2.5], [3.0]]}) == 0.5
    for other in ({"a": [1.0]}, {"b": [1.0, 2.0]}, {"a": [1.0, float("nan")]}):
        assert largest({"a": [1.0, 2.0]}, other) == float("inf")
