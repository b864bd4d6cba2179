"""Two balls in free flight that may collide once: where is the first ball a unit of time later?

States instead of the video of Kang et al. 2025, "How Far Is Video Generation from World Model: A Physical Law
Perspective" (arXiv 2411.02385), with the same three questions: usual conditions, conditions beyond them, and new
combinations of usual ones. Only +, -, *, / and square roots of IEEE numbers are used, so that the labels are the same
on every platform.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_uniform
from ...core.errors import BadDefinition
from ._rows import make_counters, stack_blocks

Reals = NDArray[np.float64]

DENSITIES = {"brass": 8.0, "cork": 0.25, "glass": 2.5, "iron": 7.0, "oak": 0.75, "stone": 4.0}
"""Mass per area, in units of mass per squared unit of length."""


def rows(*, seed: str, regimes: list[dict[str, Any]]) -> pa.Table:
    """`rows` pairs of balls of each regime (`regime`, its name; `speed` and `radius`, [least, largest] for both balls,
    in units of length per time and of length).

    The first ball begins at the origin and flies right; the second flies left towards it, off its line by less than
    the sum of their radii. Columns: `state` (float32[2,6]: x, y, velocity in x and y, radius, density of each ball),
    `x` and `y` (the first ball's position at time 1, without gravity or friction, with an elastic collision), `first`
    and `second` (the materials), `collides` (0 or 1), `regime`.
    """
    blocks = []
    for regime in regimes:
        state, materials = _draw_states(f"{seed}/{regime.get('regime', '')}", **regime)
        position, collides = compute_outcome(state.astype(np.float64))
        first, second = np.array(list(DENSITIES), object)[materials.T]
        columns = {"state": state, "x": position[:, 0], "y": position[:, 1], "first": first, "second": second}
        blocks.append(columns | {"collides": collides.astype(np.int64), "regime": str(regime["regime"])})
    return stack_blocks(blocks)


def _draw_states(
    stream: str, *, regime: str, rows: int, speed: list[float], radius: list[float]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Draw the balls of one regime, (rows, 2, 6), and their materials, (rows, 2)."""
    if not 0 < radius[0] <= radius[1] or not 0 <= speed[0] <= speed[1]:
        raise BadDefinition(f"balls: {regime}: speed and radius need [least, largest], and radius must be above 0")
    each = make_counters(rows * 2)

    def between(name: str, low: float, high: float) -> Reals:
        return low + (high - low) * draw_uniform(f"{stream}/{name}", each).reshape(rows, 2)

    radii, speeds = between("radius", *radius), between("speed", *speed)
    tilt = between("tilt", -0.1, 0.1)
    gap = between("gap", 0.0, 1.0)
    materials = draw_below(f"{stream}/material", each, len(DENSITIES)).reshape(rows, 2)
    reach = radii.sum(axis=1)
    state = np.zeros((rows, 2, 6))
    state[:, 1, 0] = reach + (speeds.sum(axis=1)) * (0.1 + 0.8 * gap[:, 0])
    state[:, 1, 1] = reach * (1.6 * gap[:, 1] - 0.8)
    state[:, :, 2] = speeds * np.array([1.0, -1.0])
    state[:, :, 3] = speeds * tilt
    state[:, :, 4] = radii
    state[:, :, 5] = np.array(list(DENSITIES.values()))[materials]
    return state.astype(np.float32), materials


def compute_outcome(state: Reals) -> tuple[Reals, NDArray[np.bool_]]:
    """Return the first ball's position (n, 2) after a unit of time, and whether the balls collide before; `state` is
    (n, 2, 6), without overlap. With d the vector between the centres and w the relative velocity, they touch at the
    smaller root of |d + w t| = r1 + r2, and exchange an impulse 2 m1 m2 / (m1 + m2) (w . n) along their normal n."""
    at, velocity, radius, density = state[:, :, :2], state[:, :, 2:4], state[:, :, 4], state[:, :, 5]
    offset, relative = at[:, 1] - at[:, 0], velocity[:, 1] - velocity[:, 0]
    reach = radius[:, 0] + radius[:, 1]
    a, b, c = (
        _dot_product(relative, relative),
        _dot_product(offset, relative),
        _dot_product(offset, offset) - reach * reach,
    )
    square = b * b - a * c
    meet = np.where((square > 0) & (b < 0), (-b - np.sqrt(np.maximum(square, 0))) / np.where(a > 0, a, 1), np.inf)
    collides = (meet >= 0) & (meet < 1)
    when = np.where(collides, meet, 0.0)[:, None]
    normal = (offset + relative * when) / reach[:, None]
    mass = density * radius * radius
    share = 2 * mass[:, 1] / (mass[:, 0] + mass[:, 1])
    after = velocity[:, 0] + (share * _dot_product(relative, normal))[:, None] * normal
    flown = np.where(collides[:, None], velocity[:, 0] * when + after * (1 - when), velocity[:, 0])
    return at[:, 0] + flown, collides


def _dot_product(left: Reals, right: Reals) -> Reals:
    """Return the scalar product of vectors (n, 2), in a fixed order of operations."""
    return left[:, 0] * right[:, 0] + left[:, 1] * right[:, 1]
