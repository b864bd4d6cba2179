"""Two balls: the closed form agrees with a simulation in small steps and keeps what physics keeps."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import balls

REGIMES = [
    {"regime": "usual", "rows": 300, "speed": [1.0, 4.0], "radius": [0.7, 1.5]},
    {"regime": "faster", "rows": 100, "speed": [4.5, 6.0], "radius": [0.7, 1.5]},
]
TABLE = balls.rows(seed="t", regimes=REGIMES)
STATE = np.array(TABLE["state"].to_pylist()).reshape(-1, 2, 6)


def simulated(state: np.ndarray, steps: int = 20_000) -> np.ndarray:
    """Both balls' places and velocities at time 1, (n, 2, 4), in small steps: where balls overlap and come closer,
    their velocities are reflected in the frame of their centre of mass."""
    at, velocity = state[:, :, :2].copy(), state[:, :, 2:4].copy()
    mass = (state[:, :, 5] * state[:, :, 4] ** 2)[:, :, None]
    reach = state[:, :, 4].sum(1)
    for _ in range(steps):
        at += velocity / steps
        apart, relative = at[:, 1] - at[:, 0], velocity[:, 1] - velocity[:, 0]
        far = np.linalg.norm(apart, axis=1)
        hit = (far < reach) & ((apart * relative).sum(1) < 0)
        if hit.any():
            normal = (apart / far[:, None])[:, None, :]
            centre = (mass * velocity).sum(1, keepdims=True) / mass.sum(1, keepdims=True)
            inner = velocity - centre
            mirrored = centre + inner - 2 * (inner * normal).sum(2, keepdims=True) * normal
            velocity = np.where(hit[:, None, None], mirrored, velocity)
    return np.concatenate([at, velocity], axis=2)


def test_the_first_ball_is_where_a_simulation_puts_it():
    some = STATE[::20]
    position = np.column_stack([TABLE["x"].to_numpy(), TABLE["y"].to_numpy()])[::20]
    error = np.abs(simulated(some)[:, 0, :2] - position).max(axis=1)
    assert len(error) == 20
    assert (error < 0.01).all()


def test_most_balls_collide_and_those_that_do_not_fly_straight():
    collides = TABLE["collides"].to_numpy() == 1
    assert 0.8 < collides.mean() < 1
    straight = STATE[~collides, 0, :2] + STATE[~collides, 0, 2:4]
    assert np.allclose(np.column_stack([TABLE["x"], TABLE["y"]])[~collides], straight)


def test_after_a_collision_momentum_and_energy_are_what_they_were():
    mirrored = STATE[:, ::-1]
    first, collides = balls.compute_outcome(STATE, 2.0)
    second, _ = balls.compute_outcome(mirrored, 2.0)
    later = [balls.compute_outcome(state, 2.25)[0] for state in (STATE, mirrored)]
    velocity = np.stack([(later[0] - first) / 0.25, (later[1] - second) / 0.25], axis=1)
    mass = (STATE[:, :, 5] * STATE[:, :, 4] ** 2)[:, :, None]
    before = STATE[:, :, 2:4]
    met = collides & balls.compute_outcome(STATE, 2.25)[1]
    assert met.sum() > 300
    assert np.allclose((mass * velocity).sum(1)[met], (mass * before).sum(1)[met])
    assert np.allclose((mass * velocity**2).sum((1, 2))[met], (mass * before**2).sum((1, 2))[met])


def test_a_much_heavier_ball_flies_on_and_a_lighter_one_bounces():
    state = np.array([[[0, 0, 1, 0, 1, 1], [3, 0, 0, 0, 1, 1e9]]], float)
    position, collides = balls.compute_outcome(state, 2.0)
    assert collides.all()
    assert np.allclose(position, [[0.0, 0.0]], atol=1e-6), "one unit there, one unit back"
    position, _ = balls.compute_outcome(state[:, ::-1], 2.0)
    assert np.allclose(position, [[3.0, 0.0]], atol=1e-6)


def test_balls_begin_apart_and_states_lie_in_their_regime():
    apart = np.linalg.norm(STATE[:, 1, :2] - STATE[:, 0, :2], axis=1)
    assert (apart >= STATE[:, :, 4].sum(1)).all()
    regime = np.array(TABLE["regime"].to_pylist())
    for item in REGIMES:
        here = STATE[regime == item["regime"]]
        assert len(here) == item["rows"]
        for column, (low, high) in ((2, item["speed"]), (4, item["radius"])):
            values = np.abs(here[:, :, column])
            assert low - 1e-6 <= values.min() < values.max() <= high + 1e-6


def test_materials_are_the_densities_in_the_state():
    for position, name in enumerate(("first", "second")):
        assert [balls.DENSITIES[material] for material in TABLE[name].to_pylist()] == STATE[:, position, 5].tolist()


@pytest.mark.parametrize("wrong", [{"radius": [0.0, 1.0]}, {"radius": [2.0, 1.0]}, {"speed": [-1.0, 1.0]}])
def test_a_regime_that_is_impossible_is_refused(wrong):
    with pytest.raises(BadDefinition, match="balls: usual"):
        balls.rows(seed="t", regimes=[REGIMES[0] | wrong])
