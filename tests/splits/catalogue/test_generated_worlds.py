"""Generated mazes, grids, images and physics: what is drawn is what its fields say, by another way of computing it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import (
    arc_grids,
    balls,
    cloned_scan,
    hamiltonian,
    in_context_regression,
    interventions,
    linear_unit_tests,
    mazes,
    shapes,
    shifted_gaussians,
    slabs,
    xor_clusters,
)
from farshift.loaders.generators.scan import list_commands
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


TURNS = {
    "1": lambda y, x: (y, x),
    "2": lambda y, x: (y, 2 - x),
    "3": lambda y, x: (2 - y, x),
    "4": lambda y, x: (x, 2 - y),
    "5": lambda y, x: (2 - x, y),
}
MOVES = {"ell": (0, 0), "chair": (-1, 0), "flag": (1, 0), "hook": (0, -1), "tap": (0, 1)}
PAINTS = {"none": None, "6": 2, "7": 3, "8": 4, "9": 5}


def list_outcomes(row) -> list[np.ndarray]:
    """The grids to which the indicators lead, for each place of the 3 x 3 box that the object allows."""
    grid, colour = read_grid(row["grid"]), int(row["colour"])
    mask = np.array(arc_grids.SHAPES[row["shape"]])
    poses = [np.rot90(side, turn) for side in (mask, mask[:, ::-1]) for turn in range(4)]
    outcomes = []
    for top in range(8):
        for left in range(8):
            inside = np.argwhere(grid == colour) - (top, left)
            if inside.min() < 0 or inside.max() > 2:
                continue
            box = np.zeros((3, 3), int)
            box[tuple(inside.T)] = 1
            if not any((box == pose).all() for pose in poses):
                continue
            after = np.where(grid == colour, 0, grid)
            for y, x in inside:
                turned_y, turned_x = TURNS[row["colour"]](y, x)
                place = (top + turned_y + MOVES[row["shape"]][0], left + turned_x + MOVES[row["shape"]][1])
                after[place] = PAINTS[row["neighbour"]] or colour
            outcomes.append(after)
    return outcomes


def read_grid(text: str) -> np.ndarray:
    return np.array([[int(cell) for cell in line.split()] for line in text.split(" / ")])


def test_grids_are_moved_turned_and_painted_as_their_indicators_say():
    rows = arc_grids.rows(seed="t", per_combination=4).to_pylist()
    assert set(Counter((r["shape"], r["colour"], r["neighbour"]) for r in rows).values()) == {4}
    own = {("2", "6"), ("3", "7"), ("4", "8"), ("5", "9")}
    for row in rows:
        assert any((after == read_grid(row["result"])).all() for after in list_outcomes(row)), row
        paints = row["neighbour"] != "none" and (row["colour"], row["neighbour"]) not in own
        assert row["active"] == (row["shape"] != "ell") + (row["colour"] != "1") + paints


def test_shapes_have_their_colour_on_a_dark_ground_and_are_the_figures_they_are_named_for():
    table = shapes.rows(seed="t", per_combination=2)
    pixels = np.array(table["picture"].to_pylist(), np.int64).reshape(-1, 24, 24, 3)
    factors = zip(*(table[name].to_pylist() for name in ("shape", "colour", "size", "place")), strict=True)
    assert set(Counter(factors).values()) == {2}
    for picture, colour in zip(pixels, table["colour"].to_pylist(), strict=True):
        bright = picture.max(axis=2) >= 100
        assert (np.abs(picture[bright] - shapes.COLOURS[colour]) <= 16).all() and (picture[~bright] < 32).all()
    y, x = np.mgrid[-12:12, -12:12]
    expected = {
        "disc": y * y + x * x <= 36,
        "ring": (y * y + x * x >= 9) & (y * y + x * x <= 36),
        "square": np.maximum(abs(y), abs(x)) <= 5,
        "cross": (np.minimum(abs(y), abs(x)) <= 2) & (np.maximum(abs(y), abs(x)) <= 6),
        "triangle": (y >= -6) & (y <= 6) & (abs(x) <= (y + 6) / 2),
    }
    for name, mask in expected.items():
        built = shapes.make_shape_mask(np.array([shapes.SHAPES.index(name)]), np.array([6]), np.array([[12, 12]]))[0]
        assert (built == mask).all(), name


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


def test_the_first_ball_is_where_a_simulation_in_small_steps_puts_it():
    table = balls.rows(seed="t", regimes=[REGIME])
    state = np.array(table["state"].to_pylist()).reshape(-1, 2, 6)
    at, velocity = state[:, :, :2].copy(), state[:, :, 2:4].copy()
    mass, reach = (state[:, :, 5] * state[:, :, 4] ** 2)[:, :, None], state[:, :, 4].sum(1)
    for _ in range(steps := 10_000):
        at += velocity / steps
        apart, relative = at[:, 1] - at[:, 0], velocity[:, 1] - velocity[:, 0]
        far = np.linalg.norm(apart, axis=1)
        hit = (far < reach) & ((apart * relative).sum(1) < 0)
        normal = (apart / far[:, None])[:, None, :]
        inner = velocity - (mass * velocity).sum(1, keepdims=True) / mass.sum(1, keepdims=True)
        velocity = np.where(
            hit[:, None, None], velocity - 2 * (inner * normal).sum(2, keepdims=True) * normal, velocity
        )
    assert np.abs(at[:, 0] - np.column_stack([table["x"], table["y"]])).max() < 0.02
    assert 0.7 < table["collides"].to_numpy().mean() <= 1


def draw_linear_problem(example: int, scrambled: bool = False):
    table = linear_unit_tests.rows(example=example, scrambled=scrambled, train_rows=2000, test_rows=2000, seed="t")
    return read_inputs(table, 10), table["target"].to_numpy(), np.array(table["environment"])


def read_inputs(table, width: int, field: str = "inputs") -> np.ndarray:
    return table[field].combine_chunks().flatten().to_numpy().reshape(-1, width).astype(np.float64)


def test_the_linear_unit_tests_are_those_of_the_paper():
    inputs, target, environment = draw_linear_problem(1)
    causes = [fit(inputs[environment == name, :5], target[environment == name])[0] for name in ("E0", "E1", "E2")]
    assert np.allclose(causes[0], causes[2], atol=0.2), "the use of the causes is one in all environments"
    effects = [fit(inputs[environment == name], target[environment == name])[0][5:] for name in ("E0", "E2")]
    assert np.abs(effects[0] - effects[1]).max() > 0.3, "that of the effects is not"
    inputs, target, environment = draw_linear_problem(2)
    assert (target == (inputs[:, :5].sum(1) > 0)).mean() > 0.999
    for name, usual in (("E0", 0.95), ("E1", 0.97), ("E2", 0.99)):
        here = environment == name
        assert ((inputs[here, 5:].mean(1) > 0) == (target[here] == 1)).mean() == pytest.approx(usual, abs=0.02)
    inputs, target, environment = draw_linear_problem(3)
    for label, centre in ((0, 0.1), (1, -0.1)):
        assert np.allclose(inputs[target == label, :5].mean(0), centre, atol=0.01)
    plain, turned = draw_linear_problem(1)[0], draw_linear_problem(1, scrambled=True)[0]
    assert np.allclose(np.linalg.norm(plain, axis=1), np.linalg.norm(turned, axis=1), rtol=1e-4)


def fit(inputs, target):
    """Least squares with an intercept: the weights, and the variance that is left."""
    columns = np.column_stack([inputs, np.ones(len(inputs))])
    result, *_ = np.linalg.lstsq(columns, target, rcond=None)
    return result[:-1], float(np.var(target - columns @ result))


def test_only_the_shuffled_inputs_of_slabs_cease_to_tell():
    counts = {"as drawn": 2000, "linear shuffled": 2000, "slabs shuffled": 2000}
    table = slabs.rows(slabs=5, width=6, counts=counts, seed="t")
    inputs, label = read_inputs(table, 6), table["label"].to_numpy() == 1
    linear = (inputs[:, 0] > 0) == label
    by_slabs = ((np.floor((inputs[:, 1:] + 1) / ((2 - 0.8) / 5 + 0.2)).astype(int) % 2 == 1).sum(1) == 5) == label
    for environment, tells in zip(counts, ((1, 1), (0.5, 1), (1, 0.5)), strict=True):
        here = np.array(table["environment"]) == environment
        assert (linear[here].mean(), by_slabs[here].mean()) == pytest.approx(tells, abs=0.05)


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


def test_a_clone_says_the_same_in_words_that_are_all_others():
    rows, known = cloned_scan.rows(), list_commands()
    commands, actions, languages, meanings = (rows[name].to_pylist() for name in rows.column_names)
    words: dict[str, set[str]] = {"original": set(), "clone": set()}
    for command, action, language, meaning in zip(commands, actions, languages, meanings, strict=True):
        words[language] |= set(command.split())
        assert known[meaning] == action and (language == "clone" or command == meaning)
    assert not words["original"] & words["clone"] and len(words["clone"]) == 13
    assert Counter(languages) == dict.fromkeys(words, len(known))


PLAIN = {"rows": 4000, "on": [], "shift": 0.0, "scale": 1.0, "hard": False}


def test_interventions_leave_the_regression_on_the_causes_and_cut_effects_from_the_target():
    environments = [
        PLAIN | {"environment": "none"},
        PLAIN | {"environment": "cause", "on": [2], "shift": 3.0, "scale": 2.0},
        PLAIN | {"environment": "effects", "on": [5, 6, 7, 8], "hard": True},
    ]
    table = interventions.rows(seed="t", environments=environments)
    inputs, target, names = read_inputs(table, 8), table["target"].to_numpy(), np.array(table["environment"])
    weights = interventions.draw_weights("t")
    for name in ("none", "cause", "effects"):
        result, left = fit(inputs[names == name][:, :4], target[names == name])
        assert np.allclose(result, weights[:4, 4], atol=0.1) and left == pytest.approx(1, abs=0.08)
    moved = inputs[names == "cause"].mean(axis=0) - inputs[names == "none"].mean(axis=0)
    assert np.allclose(moved, np.delete(np.linalg.inv(np.eye(9) - weights)[1] * 3, 4), atol=0.6)
    effects, its = inputs[names == "effects"][:, 4:], target[names == "effects"]
    assert max(abs(np.corrcoef(column, its)[0, 1]) for column in effects.T) < 0.06


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


@pytest.mark.parametrize("inputs", in_context_regression.INPUTS)
def test_the_best_penalty_is_the_noises_variance_wherever_inputs_lie(inputs):
    prompt, target, _ = draw_prompts(inputs, count=4000, noise=0.5)
    x, y, query = prompt[:, :6, :4], prompt[:, :6, 4], prompt[:, 6, :4]
    error = {}
    for penalty in (1e-6, 0.25, 4.0):
        gram = np.einsum("nki,nkj->nij", x, x) + penalty * np.eye(4)
        weights = np.linalg.solve(gram, np.einsum("nki,nk->ni", x, y)[..., None])[..., 0]
        error[penalty] = np.mean((np.einsum("ni,ni->n", query, weights) - target) ** 2)
    assert error[0.25] <= 1.001 * min(error.values()) and error[0.25] < target.var()


def test_a_row_has_noise_of_its_own_size_and_every_other_one_asks_for_it():
    regime = {"name": "a", "inputs": "standard", "rows": 2000, "least": 40, "most": 40, "deviation": [0.2, 1.0]}
    options = {"width": 3, "most_pairs": 40, "noise": 9.0, "seed": "t"}
    table = in_context_regression.rows(regimes=[regime | {"weights": 0.0}], **options)
    prompt = read_inputs(table, 205, "prompt").reshape(-1, 41, 5)
    target, asks = table["target"].to_numpy(), np.arange(2000) % 2 == 1
    assert (prompt[:, -1, 3] == asks).all() and table["question"].to_pylist()[:2] == ["mean, a", "deviation, a"]
    assert 0.2 <= target[asks].min() < 0.21 and 0.99 < target[asks].max() < 1
    ratio = prompt[asks, :-1, 3].astype(float) / target[asks, None]
    assert ratio.var() == pytest.approx(1, abs=0.03) and abs(ratio.mean()) < 0.02
    assert (ratio**2).mean(axis=1).std() == pytest.approx(np.sqrt(2 / 40), rel=0.1), "and no row's is larger"
    assert target[~asks].std() == pytest.approx(np.sqrt((1 + 0.2 + 0.04) / 3), rel=0.1)
    steep = in_context_regression.rows(regimes=[regime | {"weights": 3.0}], **options)["target"].to_numpy()
    plain = in_context_regression.rows(regimes=[regime], **options)["target"].to_numpy()
    assert np.array_equal(steep[asks], plain[asks])
    assert np.allclose(steep[~asks] - target[~asks], 3 * (plain[~asks] - target[~asks]))


@pytest.mark.parametrize(
    ("generate", "options", "complaint"),
    [
        (mazes.rows, {"counts": {"8": 1000}}, "must be odd"),
        (mazes.rows, {"counts": {"3": 1000}}, "different mazes"),
        (arc_grids.rows, {"per_combination": 1000}, "different grids"),
        (hamiltonian.rows, {"counts": {"pendulum": 1}}, "no system 'pendulum'"),
        (balls.rows, {"regimes": [REGIME | {"radius": [2.0, 1.0]}]}, "balls: usual"),
        (slabs.rows, {"width": 2, "slabs": 4, "counts": {"as drawn": 2}}, "slabs"),
        (shifted_gaussians.rows, {"form": "label", "width": 4, "counts": {"0": 2}}, "shifted_gaussians"),
        (
            interventions.rows,
            {"environments": [PLAIN | {"environment": "wrong", "on": [9]}]},
            "numbers of inputs, 1 to 8",
        ),
        (
            linear_unit_tests.rows,
            {"example": 4, "scrambled": False, "train_rows": 1, "test_rows": 1},
            "example = 4: use 1, 2 or 3",
        ),
        (
            in_context_regression.rows,
            {
                "width": 4,
                "most_pairs": 6,
                "noise": 0.0,
                "regimes": [{"name": "a", "inputs": "sideways", "rows": 1, "least": 1, "most": 6}],
            },
            "inputs = 'sideways': use one of standard, skewed",
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
