"""Trajectories keep their energy, follow SciPy's integration of the same systems, and begin where they are said to."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import hamiltonian
from scipy.integrate import solve_ivp

POTENTIALS = {
    "spring": lambda k, x, y: k * (x * x + y * y) / 2,
    "two springs": lambda k, x, y: (k * x * x + 2 * k * y * y) / 2,
    "quartic": lambda k, x, y: k * (x**4 + y**4) / 4,
    "double well": lambda k, x, y: k * (x * x - 1) ** 2 / 4 + y * y / 2,
    "Henon-Heiles": lambda k, x, y: (x * x + y * y) / 2 + k * (x * x * y - y**3 / 3),
    "Kepler": lambda k, x, y: -k / np.hypot(x, y),
}
TABLE = hamiltonian.rows(seed="t", counts=dict.fromkeys(POTENTIALS, 40))
PATH = np.array(TABLE["trajectory"].to_pylist()).reshape(-1, 8, 4)
LATER = np.column_stack([TABLE["later_q1"], TABLE["later_q2"]])
K, SYSTEM = TABLE["k"].to_numpy(), np.array(TABLE["system"].to_pylist())

each = pytest.mark.parametrize("system", sorted(POTENTIALS))


@each
def test_energy_stays_what_it_was(system):
    path, k = PATH[system == SYSTEM], K[system == SYSTEM][:, None]
    energy = (path[:, :, 2] ** 2 + path[:, :, 3] ** 2) / 2 + POTENTIALS[system](k, path[:, :, 0], path[:, :, 1])
    assert np.ptp(energy, axis=1).max() < 1e-3


@each
def test_the_label_is_where_scipy_puts_the_particle_two_units_after_the_last_one_seen(system):
    def slope(of, x, y):
        e = 1e-6
        potential = POTENTIALS[system]
        return [
            (potential(of, x + e, y) - potential(of, x - e, y)) / (2 * e),
            (potential(of, x, y + e) - potential(of, x, y - e)) / (2 * e),
        ]

    for row in np.flatnonzero(system == SYSTEM)[:3]:
        k = K[row]
        result = solve_ivp(
            lambda _, s, k=k: [s[2], s[3], *(-g for g in slope(k, s[0], s[1]))],
            (0, 3.75),
            PATH[row, 0],
            t_eval=[1.75, 3.75],
            rtol=1e-8,
            atol=1e-8,
        )
        assert np.allclose(result.y[:, 0], PATH[row, -1], atol=5e-3)
        assert np.allclose(result.y[:2, 1], LATER[row], atol=5e-3)


def test_half_the_step_gives_the_same_paths_nearly():
    k, state = K[SYSTEM == "quartic"], PATH[SYSTEM == "quartic"][:, 0].T.astype(float)
    fine = hamiltonian.integrate_trajectory("quartic", k, state[:2], state[2:], 8, step=hamiltonian.STEP / 2)
    assert np.abs(fine - PATH[SYSTEM == "quartic"]).max() < 1e-3


def test_strengths_and_starts_lie_in_their_ranges():
    bounded = SYSTEM == "Henon-Heiles"
    assert ((K[~bounded] >= 0.5) & (K[~bounded] <= 1.5)).all()
    assert (K[bounded] <= 0.75).all()
    distance = np.hypot(PATH[SYSTEM == "Kepler"][:, 0, 0], PATH[SYSTEM == "Kepler"][:, 0, 1])
    assert ((distance > 0.799) & (distance < 1.201)).all()


def test_a_system_again_has_other_draws_and_its_own_name():
    again = hamiltonian.rows(seed="t", counts={"spring": 5, "spring again": 5})
    assert again["system"].to_pylist() == ["spring"] * 10
    assert not set(again["k"].to_pylist()[:5]) & set(again["k"].to_pylist()[5:])
    with pytest.raises(BadDefinition, match="no system 'pendulum'"):
        hamiltonian.rows(seed="t", counts={"pendulum": 1})
