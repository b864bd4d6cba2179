"""Generators for the theory of training dynamics, against closed forms and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.generators import feature_noise, linear_teacher
from numpy.typing import NDArray

D, NOISE = 40, 0.5


def excess_by_formula(s: NDArray[np.float64], rows: int, t: float) -> float:
    positive = np.where(s > 1e-12, s, 1.0)
    noise = np.where(s > 1e-12, (1 - np.exp(-positive * t)) ** 2 / positive, 0.0)
    return float(np.mean(np.exp(-2 * s * t) + NOISE**2 * D / rows * noise))


def draw(seed: str, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table = linear_teacher.rows(
        dimension=D, noise=NOISE, regimes=[{"name": "train", "rows": rows, "scale": 1}], seed=seed
    )
    return np.stack(table["x"].to_numpy()).astype(np.float64), table["y"].to_numpy()


@pytest.mark.parametrize("rows", [10, 40, 160])
@pytest.mark.parametrize("time", [0.5, 5.0])
def test_a_student_errs_as_the_closed_form_of_gradient_flow_says(rows, time):
    found, expected = [], []
    for number in range(150):
        x, y = draw(str(number), rows)
        teacher = np.linalg.lstsq(*draw_noiseless(str(number)), rcond=None)[0]
        w, dt = np.zeros(D), 0.02
        for _ in range(round(time / dt)):
            w -= dt * x.T @ (x @ w - y) / rows
        found.append(np.sum((w - teacher) ** 2))
        expected.append(excess_by_formula(np.linalg.eigvalsh(x.T @ x / rows), rows, time))
    assert np.mean(found) == pytest.approx(np.mean(expected), rel=0.06)


def draw_noiseless(seed: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    table = linear_teacher.rows(
        dimension=D, noise=0.0, regimes=[{"name": "teacher", "rows": D + 5, "scale": 1}], seed=seed
    )
    return np.stack(table["x"].to_numpy()).astype(np.float64), table["y"].to_numpy()


def test_the_numbers_of_the_claim_are_the_formula_at_marchenko_pastur_eigenvalues():
    from farshift.benchmarks.claims.claim import load_claim

    published = load_claim("overtraining-peaks-at-as-many-rows").published
    for name, load, t in (
        ("early_as_many", 1, 2),
        ("late_as_many", 1, 100),
        ("late_few", 0.25, 100),
        ("late_many", 4, 100),
    ):
        x = np.random.default_rng(0).standard_normal((round(800 * load), 800))
        s = np.linalg.eigvalsh(x @ x.T / len(x))[-min(x.shape) :]
        excess = np.sum(np.exp(-2 * s * t) + NOISE**2 / load * (1 - np.exp(-s * t)) ** 2 / s) / 800 + max(0, 1 - load)
        assert np.sqrt(NOISE**2 + excess) == pytest.approx(published[name].value, abs=0.03)


def test_a_weak_feature_is_everywhere_and_a_strong_one_in_its_share_of_rows():
    regimes = [{"name": "a", "rows": 2000, "share": 0.8}, {"name": "b", "rows": 50, "share": 0.0}]
    table = feature_noise.rows(dimension=30, weak=0.25, strong=1.0, noise=0.5, regimes=regimes, seed="t")
    x = np.stack(table["patches"].to_numpy()).reshape(-1, 2, 30)
    y = np.where(table["label"].to_numpy() == 1, 1, -1)
    strong = np.array(table["features"].to_pylist()) == "strong and weak"
    assert (x[:, 0, 0] == 0.25 * y).all() and not x[:, 0, 1:].any()
    assert (x[:, 1, 1] == y * strong).all() and not x[:, 1, 0].any()
    assert strong[:2000].mean() == pytest.approx(0.8, abs=0.03) and not strong[2000:].any()
    assert np.sqrt((x[:, 1, 2:] ** 2).sum(axis=1).mean()) == pytest.approx(0.5 * np.sqrt(28 / 30), rel=0.02)


def test_feature_noise_needs_three_dimensions():
    with pytest.raises(BadDefinition, match="dimension = 2"):
        feature_noise.rows(dimension=2, weak=0.25, strong=1.0, noise=0.5, regimes=[], seed="t")
