"""Nested expressions and propositional statements, against evaluators of their own and truth tables."""

from __future__ import annotations

import statistics
from itertools import product

import pytest
from algorithmic_cases import instances
from farshift.core.errors import BadDefinition

DEPTHS = (1, 2, 3, 6, 12)
APPLY = {
    "[MAX": max,
    "[MIN": min,
    "[MED": lambda values: int(statistics.median(values)),
    "[SM": lambda values: sum(values) % 10,
}


def read(words: list[str]) -> tuple[int, int, set[str], list[int]]:
    """Value, depth, nestings and numbers of arguments of the expression that `words` begin with; takes its words."""
    word = words.pop(0)
    if word.isdigit():
        return int(word), 0, set(), []
    values, depth, nestings, counts = [], 0, set(), []
    while words[0] != "]":
        if words[0].startswith("["):
            nestings.add(f"{word[1:]}>{words[0][1:]}")
        value, below, inside, within = read(words)
        values.append(value)
        depth, nestings, counts = max(depth, below), nestings | inside, counts + within
    words.pop(0)
    return APPLY[word](values), depth + 1, nestings, [*counts, len(values)]


def test_an_expression_has_its_value_depth_length_and_nestings():
    for row in instances("listops/nested", DEPTHS, measure="depth", arguments=4):
        words = row["input"].split()
        assert row["tokens"] == len(words)
        value, depth, nestings, counts = read(words)
        assert words == []
        assert (str(value), depth) == (row["output"], row["depth"])
        assert row["nestings"].split() == sorted(nestings)
        assert set(counts) <= {2, 3, 4}


def test_answers_of_expressions_are_spread_over_the_digits():
    result = instances("listops/nested", [4], each=2000, measure="depth", arguments=4)
    shares = [sum(row["output"] == str(digit) for row in result) / len(result) for digit in range(10)]
    assert min(shares) > 0.06 and max(shares) < 0.16


def parsed(text: str) -> tuple[list[str], list[tuple[str, str]], str]:
    given, *implications, goal = text.split(" ; ")
    return given.split(" | "), [tuple(step.split(" > ")) for step in implications], goal.removesuffix(" ?")


def entailed(text: str) -> str:
    """By the truth table over all atoms."""
    heads, implications, goal = parsed(text)
    atoms = sorted({*heads, goal, *(atom for pair in implications for atom in pair)})
    for values in product((False, True), repeat=len(atoms)):
        true = dict(zip(atoms, values, strict=True))
        if (
            any(true[head] for head in heads)
            and all(true[b] or not true[a] for a, b in implications)
            and not true[goal]
        ):
            return "false"
    return "true"


@pytest.mark.parametrize(("depth", "breadth"), [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (1, 4), (2, 3)])
def test_a_statement_holds_if_and_only_if_its_truth_table_says_so(depth, breadth):
    result = instances("propositional/entailment", [depth], 12, "depth", breadths=[breadth])
    assert [row["output"] for row in result] == [entailed(row["input"]) for row in result]


def ends(text: str) -> list[list[str]]:
    """For each case of the disjunction, the atoms that follow from it, in order."""
    heads, implications, _ = parsed(text)
    onward = dict(implications)
    lanes = []
    for head in heads:
        lane = [head]
        while lane[-1] in onward:
            lane.append(onward[lane[-1]])
        lanes.append(lane)
    return lanes


@pytest.mark.parametrize(("depths", "breadths"), [((1, 6, 30), [1]), ((1, 4, 19), [4]), ((3, 8), [1, 2, 3, 4])])
def test_a_proof_goes_through_every_case_and_ends_with_the_verdict(depths, breadths):
    plain = instances("propositional/entailment", depths, measure="depth", breadths=breadths)
    proven = instances("propositional/entailment_proof", depths, measure="depth", breadths=breadths)
    assert [(row["item"], row["input"]) for row in plain] == [(row["item"], row["input"]) for row in proven]
    for row, proof in zip(plain, proven, strict=True):
        lanes, goal = ends(row["input"]), parsed(row["input"])[2]
        assert len(lanes) == row["breadth"] and {len(lane) for lane in lanes} == {row["depth"] + 1}
        assert row["output"] == ("true" if all(lane[-1] == goal for lane in lanes) else "false")
        assert proof["output"] == " ; ".join([*map(" ".join, lanes), row["output"]])


def test_counts_of_atoms_do_not_tell_true_from_false():
    result = instances("propositional/entailment", [5], 200, "depth", breadths=[3])
    shapes = {
        verdict: {
            tuple(sorted(row["input"].replace(" ?", "").split().count(atom) for atom in set(row["input"].split())))
            for row in result
            if row["output"] == verdict
        }
        for verdict in ("true", "false")
    }
    goals = {
        verdict: {row["input"].split().count(parsed(row["input"])[2]) for row in result if row["output"] == verdict}
        for verdict in ("true", "false")
    }
    assert shapes["true"] == shapes["false"]
    assert goals == {"true": {4}, "false": {4}}


def test_a_statement_that_needs_more_atoms_than_there_are_is_refused():
    with pytest.raises(BadDefinition, match="100 atoms allow chains of at most 19 for 4 cases"):
        instances("propositional/entailment", [20], measure="depth", breadths=[1, 4])
