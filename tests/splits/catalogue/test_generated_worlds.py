"""Generated mazes, grids, images and physics: what is drawn is what its fields say, by another way of computing it."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from farshift.benchmarks.claims.claim import load_claim
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import (
    arc_grids,
    balls,
    bayes_nets,
    evolving_people,
    feature_noise,
    group_shift,
    hamiltonian,
    in_context_regression,
    interventions,
    mazes,
    shifted_gaussians,
    slabs,
    xor_clusters,
)
from scipy.integrate import solve_ivp

Cell = tuple[int, int]


def measure_distances(cells: set[Cell], start: Cell) -> dict[Cell, int]:
    result, front = {start: 0}, [start]
    for y, x in front:
        for other in {(y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)} & cells - result.keys():
            result[other] = result[y, x] + 1
            front.append(other)
    return result


def test_a_maze_is_a_tree_over_all_its_rooms_and_its_path_the_shortest():
    rows = mazes.rows(seed="t", counts={"9": 60, "15": 20, "31": 3}).to_pylist()
    assert Counter(row["size"] for row in rows) == {9: 60, 15: 20, 31: 3}
    for row in rows:
        lines, path = row["maze"].split(" "), row["path"].split(" ")
        cells = {(y, x) for y, line in enumerate(lines) for x, cell in enumerate(line) if cell != "#"}
        rooms = {(y, x) for y in range(0, row["size"], 2) for x in range(0, row["size"], 2)}
        assert rooms <= cells and len(cells) == 2 * len(rooms) - 1, "a corridor fewer than rooms: no cycle"
        (start,), (goal,) = ([cell for cell in cells if lines[cell[0]][cell[1]] == sign] for sign in "SG")
        distances = measure_distances(cells, start)
        assert distances.keys() == cells, "and all joined"
        marked = {(y, x) for y, line in enumerate(path) for x, cell in enumerate(line) if cell == "*"}
        assert {start, goal} <= marked <= cells
        assert measure_distances(marked, start)[goal] == distances[goal] == row["steps"] == len(marked) - 1
    assert mazes.rows(seed="t", counts={"15": 20}).to_pylist() == [row for row in rows if row["size"] == 15]


POTENTIALS = {
    "spring": lambda k, x, y: k * (x * x + y * y) / 2,
    "two springs": lambda k, x, y: (k * x * x + 2 * k * y * y) / 2,
    "quartic": lambda k, x, y: k * (x**4 + y**4) / 4,
    "double well": lambda k, x, y: k * (x * x - 1) ** 2 / 4 + y * y / 2,
    "Henon-Heiles": lambda k, x, y: (x * x + y * y) / 2 + k * (x * x * y - y**3 / 3),
    "Kepler": lambda k, x, y: -k / np.hypot(x, y),
}


@pytest.mark.parametrize("system", sorted(POTENTIALS))
def test_trajectories_keep_their_energy_and_are_those_of_scipy(system):
    table, potential = hamiltonian.rows(seed="t", counts={system: 20}), POTENTIALS[system]
    path, k = np.array(table["trajectory"].to_pylist()).reshape(-1, 8, 4), table["k"].to_numpy()
    energy = (path[:, :, 2:] ** 2).sum(2) / 2 + potential(k[:, None], path[:, :, 0], path[:, :, 1])
    assert np.ptp(energy, axis=1).max() < 1e-3

    def move(_, state, k, e=1e-6):
        x, y = state[:2]
        slopes = (potential(k, x + e, y) - potential(k, x - e, y), potential(k, x, y + e) - potential(k, x, y - e))
        return [*state[2:], *(-slope / (2 * e) for slope in slopes)]

    for row in range(3):
        run = solve_ivp(move, (0, 3.75), path[row, 0], args=(k[row],), t_eval=[1.75, 3.75], rtol=1e-8, atol=1e-8)
        assert np.allclose(run.y[:, 0], path[row, -1], atol=5e-3)
        assert np.allclose(run.y[:2, 1], [table["later_q1"][row].as_py(), table["later_q2"][row].as_py()], atol=5e-3)


REGIME = {"regime": "usual", "rows": 40, "speed": [1.0, 4.0], "radius": [0.7, 1.5]}


def read_inputs(table, width: int, field: str = "inputs") -> np.ndarray:
    return table[field].combine_chunks().flatten().to_numpy().reshape(-1, width).astype(np.float64)


@pytest.mark.parametrize("form", ["covariate", "concept"])
def test_shifted_gaussians_move_their_inputs_or_turn_their_concept(form):
    counts = {"0": 4000, "1": 4000, "3": 4000} if form == "covariate" else {"0": 4000, "45": 4000, "90": 4000}
    table = shifted_gaussians.rows(form=form, width=4, counts=counts, seed="t")
    inputs, label, shift = read_inputs(table, 4), table["label"].to_numpy(), table["shift"].to_numpy()
    for degree in map(float, counts):
        x, y = inputs[shift == degree], label[shift == degree] == 1
        moved = degree if form == "covariate" else 0
        assert np.allclose(x.mean(0), [moved, 0, 0, 0], atol=0.07)
        if form == "covariate":
            assert (((x[:, 1] > 0) ^ (x[:, 0] > 1)) == y).mean() == pytest.approx(0.95, abs=0.02)
        else:  # two planes through the centre of a round cloud disagree on angle / 180 of it
            assert ((x[:, 0] > 0) == y).mean() == pytest.approx(0.05 + 0.9 * (1 - degree / 180), abs=0.03)


PLAIN = {"rows": 4000, "on": [], "shift": 0.0, "scale": 1.0, "hard": False}


def draw_prompts(inputs: str, count: int = 400, least: int = 6, most: int = 6, noise: float = 0.0):
    """Prompts (n, lines, width + 2: inputs, answer, whether there is one), and targets."""
    regime = {"name": inputs, "inputs": inputs, "rows": count, "least": least, "most": most}
    table = in_context_regression.rows(width=4, most_pairs=6, noise=noise, regimes=[regime], seed="t")
    return read_inputs(table, 42, "prompt").reshape(-1, 7, 6), table["target"].to_numpy(), table["pairs"].to_numpy()


def test_a_prompt_has_pairs_then_nothing_and_last_the_query_without_its_answer():
    prompt, _, pairs = draw_prompts("standard", least=1)
    given = np.arange(6) < pairs[:, None]
    assert np.array_equal(prompt[:, :6, -1] == 1, given) and (prompt[:, :6][~given] == 0).all()
    assert (prompt[:, 6, 4:] == 0).all() and (prompt[:, 6, :4] != 0).any(axis=1).all()
    prompt, target, _ = draw_prompts("standard")
    solved = [
        q @ np.linalg.lstsq(a, b, rcond=None)[0]
        for a, b, q in zip(prompt[:, :6, :4], prompt[:, :6, 4], prompt[:, 6, :4], strict=True)
    ]
    assert np.median(np.abs(solved - target)) < 1e-5, "without noise, least squares solves it"


def test_a_counterfactual_differs_in_the_attribute_and_in_what_it_causes():
    table = evolving_people.rows(seed="s", periods=4, people=50, effect=1.0)
    x, half = read_inputs(table, 2, "x"), 200
    attribute = table["attribute"].to_numpy()
    assert (attribute[:half] == 1 - attribute[half:]).all()
    assert x[half:, 0] - x[:half, 0] == pytest.approx(1.0 - 2.0 * attribute[:half], abs=1e-6)
    for same in (x[:, 1], *(table[name].to_numpy() for name in ("label", "person", "period"))):
        assert (same[:half] == same[half:]).all()


REGIMES = {"none": {}, "covariate": {"covariate": 2.0}, "concept": {"concept": 2.0}, "omitted": {"omitted": 2.0}}


def test_a_shift_between_groups_changes_what_its_name_says_and_nothing_else():
    table = group_shift.rows(seed="s", regimes=REGIMES, counts={"train": [400, 100], "test": [200, 300]})
    x = read_inputs(table, 2, "x").reshape(4, -1, 2)
    one, label = (table[name].to_numpy().reshape(4, -1) for name in ("attribute", "label"))
    assert table["sample"].to_pylist()[:1000] == ["train"] * 500 + ["test"] * 500 and one[0].sum() == 400
    assert x[1] - x[0] == pytest.approx(np.stack([2.0 * one[0], 0 * one[0]], axis=1), abs=1e-6)
    assert (x[2] == x[0]).all() and (x[3] == x[0]).all()
    assert (label[2] == label[0])[one[0] == 0].all() and (label[2] != label[0])[one[0] == 1].any()
    assert (label[3] >= label[0])[one[0] == 1].mean() > 0.8


SMALL = {"nets": 2, "variables": 6, "edges": 6, "held_out": 2, "windows": 1500}


def test_windows_of_a_net_never_show_a_held_out_pair_and_say_in_vectors_what_the_text_says():
    table = bayes_nets.rows(seed="a test", **SMALL).to_pylist()
    pairs = {kind: {row["pair"] for row in table if row["set"] == kind} for kind in ("held-out pair", "seen pair")}
    windows = [row["text"].replace("=0", "").replace("=1", "").split()[1:] for row in table if row["set"] == "window"]
    assert not any({*pair.split()} <= {*window} for pair in pairs["held-out pair"] for window in windows)
    assert any({*pair.split()} <= {*window} for pair in pairs["seen pair"] for window in windows)
    for row in table[:50] + table[-10:]:
        known = {f"X{v}={int(value > 0)}" for v, value in enumerate(row["known"]) if value}
        assert known == {*row["text"].split()[2:]} and row["query"].index(1) == int(row["text"].split()[1][1:])


def test_a_scaffold_makes_target_and_condition_of_a_net_independent():
    net = bayes_nets.draw_net("scaffold", 6, 7)
    joint, distance = net.compute_joint(), net.compute_distances()
    assert joint.sum() == pytest.approx(1)
    for target, condition in product(range(6), repeat=2):
        if distance[target, condition] < 2 or any({target, condition} <= {*own} for own in net.parents):
            continue
        cut = net.find_scaffold(target, condition)
        for values in product((0, 1), repeat=len(cut)):
            where = [slice(None)] * 6
            for variable, value in zip(cut, values, strict=True):
                where[variable] = slice(value, value + 1)
            pair = bayes_nets.sum_pair(joint[tuple(where)], target, condition)
            assert pair[0, 0] * pair[1, 1] == pytest.approx(pair[0, 1] * pair[1, 0], abs=1e-12)


def test_the_numbers_of_the_claim_are_the_formula_at_marchenko_pastur_eigenvalues():
    published = load_claim("overtraining-peaks-at-as-many-rows").published
    for name, load, t in (
        ("early_as_many", 1, 2),
        ("late_as_many", 1, 100),
        ("late_few", 0.25, 100),
        ("late_many", 4, 100),
    ):
        x = np.random.default_rng(0).standard_normal((round(800 * load), 800))
        s = np.linalg.eigvalsh(x @ x.T / len(x))[-min(x.shape) :]
        excess = np.sum(np.exp(-2 * s * t) + 0.25 / load * (1 - np.exp(-s * t)) ** 2 / s) / 800 + max(0, 1 - load)
        assert np.sqrt(0.25 + excess) == pytest.approx(published[name].value, abs=0.03)


@pytest.mark.parametrize(
    ("generate", "options", "complaint"),
    [
        (bayes_nets.rows, SMALL | {"held_out": 9}, "only"),
        (evolving_people.rows, {"periods": 1, "people": 2, "effect": 1.0}, "periods = 1"),
        (
            feature_noise.rows,
            {"dimension": 2, "weak": 0.25, "strong": 1.0, "noise": 0.5, "regimes": []},
            "dimension = 2",
        ),
        (mazes.rows, {"counts": {"8": 1000}}, "must be odd"),
        (mazes.rows, {"counts": {"3": 1000}}, "different mazes"),
        (arc_grids.rows, {"per_combination": 1000}, "different grids"),
        (balls.rows, {"regimes": [REGIME | {"radius": [2.0, 1.0]}]}, "balls: usual"),
        (slabs.rows, {"width": 2, "slabs": 4, "counts": {"as drawn": 2}}, "slabs"),
        (
            interventions.rows,
            {"environments": [PLAIN | {"environment": "wrong", "on": [9]}]},
            "numbers of inputs, 1 to 8",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(generate, options, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        generate(seed="t", **options)


@pytest.mark.parametrize(
    "change", [{"dimension": 201}, {"dimension": 0}, {"shift": 0.1}, {"shift": 0.0}, {"shift": 20.0}]
)
def test_means_that_are_not_exact_or_not_orthogonal_are_refused(change):
    with pytest.raises(BadDefinition, match="xor_clusters: dimension = "):
        xor_clusters.rows(**{"seed": "test", "count": 3000, "dimension": 200, "shift": 0.5} | change)
