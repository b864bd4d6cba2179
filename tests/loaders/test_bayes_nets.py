"""Bayes nets: exact probabilities, scaffolds that separate, and windows that never show a held-out pair."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators.bayes_nets import Net, draw_net, rows, sum_pair

SMALL = {"nets": 2, "variables": 6, "edges": 6, "held_out": 2, "windows": 1500, "seed": "a test"}


@pytest.fixture(scope="module")
def table():
    return rows(**SMALL).to_pylist()


def test_the_joint_distribution_is_the_product_of_the_tables_by_brute_force():
    net = draw_net("brute force", 5, 6)
    joint = net.compute_joint()
    for values in product((0, 1), repeat=5):
        expected = 1.0
        for variable, (parents, own) in enumerate(zip(net.parents, net.tables, strict=True)):
            one = own[sum(values[parent] << place for place, parent in enumerate(reversed(parents)))]
            expected *= one if values[variable] else 1 - one
        assert joint[values] == pytest.approx(expected)
    assert joint.sum() == pytest.approx(1)


def test_a_scaffold_makes_target_and_condition_independent():
    for seed in range(20):
        net = draw_net(f"scaffold {seed}", 6, 7)
        joint, distance = net.compute_joint(), net.compute_distances()
        for target, condition in product(range(6), repeat=2):
            if distance[target, condition] < 2 or any({target, condition} <= {*own} for own in net.parents):
                continue
            cut = net.find_scaffold(target, condition)
            for values in product((0, 1), repeat=len(cut)):
                where = [slice(None)] * 6
                for variable, value in zip(cut, values, strict=True):
                    where[variable] = slice(value, value + 1)
                pair = sum_pair(joint[tuple(where)], target, condition)
                assert pair[0, 0] * pair[1, 1] == pytest.approx(pair[0, 1] * pair[1, 0], abs=1e-12)


def test_a_chain_is_scaffolded_by_one_variable_between():
    chain = Net(((), (0,), (1,), (2,)), tuple(np.full(2 ** bool(child), 0.3) for child in range(4)))
    assert chain.find_scaffold(3, 0) == (1,)
    assert chain.compute_distances()[0].tolist() == [0, 1, 2, 3]


def test_windows_never_show_a_held_out_pair_and_sometimes_a_seen_one(table):
    pairs_of_set = {
        kind: {row["pair"] for row in table if row["set"] == kind} for kind in ("held-out pair", "seen pair")
    }
    shown = [
        set(row["text"].replace("=0", "").replace("=1", "").split()[1:]) for row in table if row["set"] == "window"
    ]
    assert not any({*pair.split()} <= window for pair in pairs_of_set["held-out pair"] for window in shown)
    assert any({*pair.split()} <= window for pair in pairs_of_set["seen pair"] for window in shown)


def test_the_exact_probability_of_a_pair_is_the_rate_in_windows_that_show_it(table):
    for row in (row for row in table if row["set"] == "seen pair"):
        condition = row["text"].split()[-1]
        target = row["text"].split()[1]
        values = [
            int(f" {target}=1 " in f" {text} " or bool(own["probability"]))
            for own in table
            if own["set"] == "window" and condition in (text := own["text"]).split()
            if text.split()[1] == target and len(text.split()) == 3
        ]
        if len(values) > 30:
            assert abs(np.mean(values) - row["probability"]) < 4 * 0.5 / len(values) ** 0.5


def test_vectors_say_what_the_text_says(table):
    for row in table[:50] + table[-10:]:
        known = {f"X{v}={int(value > 0)}" for v, value in enumerate(row["known"]) if value}
        assert known == {*row["text"].split()[2:]} and row["query"].index(1) == int(row["text"].split()[1][1:])


def test_more_held_out_pairs_than_there_are_is_an_error():
    with pytest.raises(BadDefinition, match="only"):
        rows(**SMALL | {"held_out": 9})
