"""Anchor points against closed forms: points and segments in orthogonal planes, and a cone's projection by SciPy."""

import math

import numpy as np
import pytest
from farshift.baselines.diagnostics.anchors import compute_markers, measure
from scipy.optimize import minimize

from .trained_replicas import mlp, numbers

DRAWS = 4000


def draw(width, clouds, draws=DRAWS, seed=0):
    drawn = np.random.default_rng(seed)
    return drawn.normal(size=(draws, width)), drawn.choice([-1.0, 1.0], (draws, clouds))


def test_orthogonal_points_have_capacity_two_and_no_dimension():
    capacity, dimension, _, _ = compute_markers(list(np.eye(4)[:, None]), *draw(4, 4))
    assert capacity == pytest.approx(2, rel=0.06)
    assert dimension == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("half", [0.3, 2.0])
def test_segments_in_orthogonal_planes_have_the_closed_form_of_a_cone(half):
    """Each class is e +- half f in a plane of its own: the cone of v has the half-angle atan(1 / half)."""
    axes = np.eye(6)
    clouds = [np.stack([axes[2 * c] - half * axes[2 * c + 1], axes[2 * c] + half * axes[2 * c + 1]]) for c in range(3)]
    capacity, dimension, radius, utility = compute_markers(clouds, *draw(6, 3))
    angle = math.atan(1 / half)
    assert 1 / capacity == pytest.approx(1.5 - 2 * angle / math.pi, rel=0.06)
    outside = (2 / math.pi) * ((math.pi - angle) / 2 + math.sin(2 * angle) / 4)
    assert dimension == pytest.approx(outside, rel=0.06)
    # The anchor is e + u f: u is half where t falls on a side of the cone, and its slope where v is 0.
    turn = (np.arange(20_000) + 0.5) * math.pi / 20_000
    share = np.where(turn > math.pi / 2 + angle, np.sin(turn) ** 2, half**2 / (1 + half**2)) * (turn > angle)
    shared = 2 * np.mean(np.sin(turn) ** 2 * share)
    assert radius == pytest.approx(math.sqrt(shared / (outside - shared)), rel=0.06)
    assert utility == pytest.approx(capacity * dimension / (1 + radius**-2))


def test_larger_segments_have_a_larger_radius_and_less_capacity():
    axes = np.eye(6)
    small, large = (
        compute_markers(
            [np.stack([axes[2 * c] - r * axes[2 * c + 1], axes[2 * c] + r * axes[2 * c + 1]]) for c in range(3)],
            *draw(6, 3, 500),
        )
        for r in (0.3, 2.0)
    )
    assert large[0] < small[0]
    assert large[2] > small[2]


def test_the_capacity_is_of_the_distance_to_the_nearest_vector_that_separates():
    points = np.random.default_rng(3).normal(size=(5, 3))
    points[:, 0] += 2
    clouds = [points[:3], points[3:]]
    directions, signs = draw(3, 2, 8, seed=4)
    distances = []
    for t, y in zip(directions, signs, strict=True):
        constraint = {"type": "ineq", "fun": lambda v, y=y: np.repeat(y, [3, 2]) * (points @ v)}
        nearest = minimize(lambda v, t=t: np.square(v - t).sum(), np.zeros(3), constraints=[constraint], method="SLSQP")
        distances.append(nearest.fun)
    assert 2 / compute_markers(clouds, directions, signs)[0] == pytest.approx(np.mean(distances), rel=1e-4)


def test_trained_replicas_have_markers():
    assert set(measure(mlp(numbers(rows=40)))) == {"capacity", "dimension", "radius", "utility"}
