"""Trajectories of mechanical systems: predict a particle's later position in a system that is not in training.

The question of Song and Jeong 2024, "Towards Cross Domain Generalization of Hamiltonian Representation via Meta
Learning" (ICLR, arXiv 2212.01168), for one particle of mass 1 in the plane, H = |p|^2 / 2 + V(q):

    spring          k |q|^2 / 2                        quartic         k (q1^4 + q2^4) / 4
    two springs     (k q1^2 + 2 k q2^2) / 2            double well     k (q1^2 - 1)^2 / 4 + q2^2 / 2
    Henon-Heiles    |q|^2 / 2 + k (q1^2 q2 - q2^3 / 3)   Kepler          - k / |q|

Integrated by leapfrog, which is symplectic, in steps of 1/64. Only +, -, *, / and square roots of IEEE numbers are
used, in a fixed order, so that the rows are the same on every platform.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.draws import draw_uniform
from ._rows import make_counters, stack_blocks

Reals = NDArray[np.float64]

STEP = 1 / 64
_STEPS = 16
"""Steps between two observations, which are a quarter of a unit of time apart."""
INPUT_OBSERVATIONS = 8
"""Observations in the input, a trajectory of 1.75 units of time."""
_AHEAD = 8
"""How many observations after the input the label is: two units of time, too far for extrapolation by a line or a
parabola."""


def _spring_gradient(k: Reals, q: Reals) -> Reals:
    return k * q


def _two_springs_gradient(k: Reals, q: Reals) -> Reals:
    return np.stack([k[0] * q[0], 2 * k[0] * q[1]])


def _quartic_gradient(k: Reals, q: Reals) -> Reals:
    return k * (q * q * q)


def _double_well_gradient(k: Reals, q: Reals) -> Reals:
    return np.stack([k[0] * (q[0] * (q[0] * q[0] - 1)), q[1]])


def _henon_heiles_gradient(k: Reals, q: Reals) -> Reals:
    return np.stack([q[0] + 2 * k[0] * (q[0] * q[1]), q[1] + k[0] * (q[0] * q[0] - q[1] * q[1])])


def _kepler_gradient(k: Reals, q: Reals) -> Reals:
    square = q[0] * q[0] + q[1] * q[1]
    gradient: Reals = k * q / (square * np.sqrt(square))
    return gradient


GRADIENTS: dict[str, Callable[[Reals, Reals], Reals]] = {
    "spring": _spring_gradient,
    "two springs": _two_springs_gradient,
    "quartic": _quartic_gradient,
    "double well": _double_well_gradient,
    "Henon-Heiles": _henon_heiles_gradient,
    "Kepler": _kepler_gradient,
}
"""The gradient of V at q (2, n) with k (1, n), by the name of the system."""


def rows(*, seed: str, counts: dict[str, int]) -> pa.Table:
    """`counts[name]` trajectories of each system; a name that ends in ` again` is the same system with other draws.

    k is uniform between 0.5 and 1.5 (Henon-Heiles: half of that, so that orbits are bounded). Initial q and p are
    uniform between -1 and 1, and -0.5 and 0.5; for Henon-Heiles a third of that; for Kepler at a distance of 0.8 to
    1.2, with 0.8 to 1.2 times the speed of a circular orbit. Columns: `trajectory` (float32[8,4]: q1, q2, p1, p2),
    `later_q1` and `later_q2` (float64), `k`, `system`.
    """
    blocks = []
    for name, count in counts.items():
        system = name.removesuffix(" again")
        k, q, p = _draw_start(f"{seed}/{name}", system, count)
        path = _integrate(system, k, q, p, INPUT_OBSERVATIONS + _AHEAD)
        later = {"later_q1": path[:, -1, 0], "later_q2": path[:, -1, 1]}
        trajectory = path[:, :INPUT_OBSERVATIONS].astype(np.float32)
        blocks.append({"trajectory": trajectory, **later, "k": k, "system": system, "regime": name})
    return stack_blocks(blocks)


def _integrate(system: str, k: Reals, q: Reals, p: Reals, observations: int) -> Reals:
    """Return q and p at times 0, 1/4, 1/2 .., (n, observations, 4); k is (n,), q and p are (2, n)."""
    gradient = GRADIENTS[system]
    constant = k[None, :]
    states = [np.concatenate([q, p])]
    for _ in range(observations - 1):
        for _ in range(_STEPS):
            half = p - STEP / 2 * gradient(constant, q)
            q = q + STEP * half
            p = half - STEP / 2 * gradient(constant, q)
        states.append(np.concatenate([q, p]))
    return np.stack(states).transpose(2, 0, 1)


def _draw_start(stream: str, system: str, count: int) -> tuple[Reals, Reals, Reals]:
    """Draw k (n,), and q and p (2, n) at time 0."""
    each = make_counters(count)

    def even(name: str) -> Reals:
        return draw_uniform(f"{stream}/{name}", each)

    k = 0.5 + even("k")
    q = np.stack([2 * even("q1") - 1, 2 * even("q2") - 1])
    p = np.stack([even("p1") - 0.5, even("p2") - 0.5])
    if system == "Henon-Heiles":
        return k / 2, q / 3, p / 3
    if system == "Kepler":
        distance, share = 0.8 + 0.4 * even("distance"), 0.8 + 0.4 * even("speed")
        direction = q / np.sqrt(q[0] * q[0] + q[1] * q[1])
        speed = share * np.sqrt(k / distance)
        return k, direction * distance, np.stack([-direction[1], direction[0]]) * speed
    return k, q, p
