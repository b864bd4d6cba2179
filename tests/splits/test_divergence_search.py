"""The search for compositional splits: what it finds, what it keeps, and the rules made of it."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.splits.measures.divergence import Units, find_runs, measure_divergence, split_words
from farshift.splits.measures.mcd import search_split
from farshift.splits.rules.divergence import mcd, tmcd
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ROOT

VERBS, WHERE, HOW = ("walk", "run", "jump", "look"), ("left", "right", "back", "up"), ("", "twice", "thrice")
COMMANDS = [f"{verb} {where} {how}".strip() for verb in VERBS for where in WHERE for how in HOW]

TEXTS = st.lists(st.lists(st.sampled_from("abcde"), min_size=2, max_size=5).map(" ".join), min_size=6, max_size=30)


def units(texts: list[str]) -> tuple[Units, Units]:
    atoms = split_words(pa.chunked_array([texts]))
    return atoms, find_runs(atoms, 2)


def sides(texts: list[str], test: np.ndarray) -> tuple[list[str], list[str]]:
    return [t for t, locked in zip(texts, test, strict=True) if not locked], [
        t for t, locked in zip(texts, test, strict=True) if locked
    ]


def commands(texts: list[str] = COMMANDS) -> pa.Table:
    return pa.table({"command": texts, "row_id": pa.array(range(len(texts)), pa.uint64())})


@given(TEXTS, st.integers(1, 4), st.integers(0, 3))
def test_a_found_split_has_the_divergences_it_states_and_every_atom_in_training(texts, test_rows, seed):
    try:
        result = search_split(*units(texts), test_rows, seed=str(seed))
    except BadDefinition as error:
        assert "can be spared" in str(error)
        return
    train, test = sides(texts, result.test)
    measured = measure_divergence(train, test)
    assert len(test) == test_rows
    assert measured.unseen_atoms == 0
    assert result.atoms == pytest.approx(measured.atoms, abs=1e-9)
    assert result.compounds == pytest.approx(measured.compounds, abs=1e-9)


@settings(max_examples=20)
@given(st.lists(st.sampled_from(COMMANDS), min_size=6, max_size=9, unique=True), st.integers(1, 3))
def test_what_is_found_is_never_above_the_greatest_divergence_of_all_splits(texts, test_rows):
    result, best = found_and_best(texts, test_rows)
    assert result <= best + 1e-9


def test_of_small_sets_the_search_mostly_finds_the_greatest_divergence_of_all_splits():
    drawn = np.random.default_rng(0)
    both = []
    for size, test_rows in zip(drawn.integers(6, 10, 60), drawn.integers(1, 4, 60), strict=True):
        texts = [COMMANDS[at] for at in drawn.choice(len(COMMANDS), size, replace=False)]
        both.append(found_and_best(texts, int(test_rows)))
    result, best = np.array(both).T
    # It ends in a local optimum, now and then far from the best.
    assert np.mean(np.abs(result - best) < 1e-9) > 0.8
    assert np.mean(best - result) < 0.05


def found_and_best(texts: list[str], test_rows: int) -> tuple[float, float]:
    """The compound divergence of the split that is found, and the greatest of all splits whose atoms are all in
    training; zeros where there is none."""
    try:
        result = search_split(*units(texts), test_rows, seed="x", starts=64).compounds
    except BadDefinition:
        return 0.0, 0.0
    splits = (_measured(texts, chosen) for chosen in combinations(range(len(texts)), test_rows))
    return result, max(item.compounds for item in splits if item and not item.unseen_atoms)


def _measured(texts, chosen):
    locked = np.isin(np.arange(len(texts)), chosen)
    return measure_divergence(*sides(texts, locked))


def test_the_bound_on_atoms_is_kept_and_costs_compound_divergence():
    loose = search_split(*units(COMMANDS), 12, seed="x")
    tight = search_split(*units(COMMANDS), 12, seed="x", atom_bound=0.005)
    assert tight.atoms <= 0.005
    assert tight.compounds <= loose.compounds
    assert tight.compounds > 2 * _random(12).compounds


def _random(test_rows: int):
    order = np.random.default_rng(0).permutation(len(COMMANDS))
    return _measured(COMMANDS, order[:test_rows])


def test_a_seed_gives_one_split_in_every_process():
    program = (
        "import pyarrow as pa; from farshift.splits.rules.divergence import mcd;"
        "from test_divergence_search import commands;"
        "print(','.join(mcd(commands(), field='command', seed='s', test_rows=12, atom_bound=0.02).part))"
    )
    path = os.pathsep.join([str(ROOT / "tests" / "splits"), str(ROOT / "tests")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    here = mcd(commands(), field="command", seed="s", test_rows=12, atom_bound=0.02)
    assert done.stdout.strip() == ",".join(here.part)


def test_the_rules_say_how_far_each_row_lies_from_training():
    for outcome in (
        mcd(commands(), field="command", seed="s", test_share=0.25),
        tmcd(commands(), field="command", seed="s", test_rows=12),
    ):
        locked = outcome.part == "ood_test"
        assert locked.sum() == 12
        known = {pair for text in sides(COMMANDS, locked)[0] for pair in pairwise(text.split())}
        expected = [np.mean([pair not in known for pair in pairwise(text.split())]) for text in COMMANDS]
        assert outcome.severity.tolist() == pytest.approx(expected)
        assert not outcome.severity[~locked].any()


def test_target_maximum_compound_divergence_has_no_bound_on_atoms():
    free = tmcd(commands(), field="command", seed="s", test_rows=12).notes
    bound = mcd(commands(), field="command", seed="s", test_rows=12, atom_bound=0.005).notes
    assert free["compound_divergence"] >= bound["compound_divergence"]
    assert bound["atom_divergence"] <= 0.005


def test_longer_compounds_are_runs_of_more_words():
    outcome = tmcd(commands(), field="command", seed="s", test_rows=12, compound_words=3)
    train, test = sides(COMMANDS, outcome.part == "ood_test")
    triples = measure_divergence(
        train, test, compounds=lambda text: list(zip(*(text.split()[k:] for k in range(3)), strict=False))
    )
    assert outcome.notes["compound_divergence"] == pytest.approx(triples.compounds)


@pytest.mark.parametrize(
    ("parameters", "error", "says"),
    [
        ({"test_rows": 12, "test_share": 0.2}, BadDefinition, "one of test_rows and test_share"),
        ({}, BadDefinition, "one of test_rows and test_share"),
        ({"test_share": 1.5}, BadDefinition, "between 0 and 1"),
        ({"test_rows": 0}, BadDefinition, "between 1 and 47"),
        ({"test_rows": 48}, BadDefinition, "between 1 and 47"),
        ({"test_rows": 47}, BadDefinition, "can be spared"),
        ({"test_rows": 12, "compound_words": 1}, BadDefinition, "at least two words"),
        ({"test_rows": 12, "atom_bound": -1.0}, BadDefinition, "atom_bound = -1.0"),
        ({"test_rows": 12, "field": "comand"}, UnknownName, "did you mean command"),  # codespell:ignore comand
    ],
)
def test_what_no_search_can_do_is_refused_in_one_line(parameters, error, says):
    with pytest.raises(error, match=says) as caught:
        mcd(commands(), **{"field": "command", "seed": "s"} | parameters)
    assert "\n" not in str(caught.value)


def test_rows_of_one_word_have_no_compounds_to_part():
    with pytest.raises(BadDefinition, match="no row contains a compound"):
        mcd(commands(["a", "b", "a"]), field="command", seed="s", test_rows=1)


def test_a_bound_that_no_split_keeps_is_named_with_the_least_found():
    texts = ["a a", "b b", "a b", "b a c", "c c a"]
    with pytest.raises(BadDefinition, match=r"within 1e-06 \(the least found: 0\.\d+\): raise atom_bound"):
        mcd(commands(texts), field="command", seed="s", test_rows=1, atom_bound=1e-6)
