"""Item difficulty, estimated from a response matrix: which systems (or people) solved which items.

Two estimators that easy-to-hard data sets use (Ding et al. 2024, "Easy2Hard-Bench", arXiv 2409.18433): item response
theory, fitted by marginal maximum likelihood (Bock and Aitkin 1981, Psychometrika 46), and Glicko-2 ratings (Glickman
2012, "Example of the Glicko-2 system"), where each item plays each system once.

A response matrix is a float array of shape (systems, items): 1 solved, 0 not solved, NaN missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition

Reals = NDArray[np.float64]

_NODES = np.linspace(-5.0, 5.0, 101)
"""The grid of abilities for the integral. With many items a system's posterior is narrow and would fall between two
Gauss-Hermite nodes."""
_ITERATIONS = 1000
_STEPS = 2
_CHANGE = 1e-5
_EASINESS_PRIOR = 1 / 4.0**2
"""A normal prior with standard deviation 4 on each easiness: the estimate of an item that all systems solve is
finite."""
_SLOPE_PRIOR = 1 / 0.5**2
"""A normal prior with standard deviation 0.5 on the logarithm of each slope of the two-parameter model."""


@dataclass(frozen=True)
class ItemResponse:
    """A fitted model: system i solves item j with probability 1 / (1 + exp(-slope_j (ability_i - difficulty_j))).

    `difficulty` and `slope` have shape (items,), `ability` (systems,): the mean of its posterior. Abilities have mean 0
    and standard deviation 1 among the systems; that fixes the scale. `iterations` is how many the fit took.
    """

    difficulty: Reals
    slope: Reals
    ability: Reals
    iterations: int


def fit_item_response(responses: Reals, model: Literal["1pl", "2pl"] = "1pl") -> ItemResponse:
    """Fit the one-parameter model (one slope for all items) or the two-parameter model (a slope for each).

    Expectation-maximisation over abilities on a grid, with scoring steps for the items; the posterior mode under weak
    priors on easiness (-slope x difficulty), and in the two-parameter model on the logarithm of the slope. After each
    step the abilities are standardised anew (parameter expansion: Liu, Rubin and Wu 1998, Biometrika 85), without which
    many items make it slow. Raises `BadDefinition` for another model, for a matrix with values other than 0, 1 and NaN,
    for an item or a system without a response, for fewer than two systems, and where the fit does not settle.
    """
    if model not in ("1pl", "2pl"):
        raise BadDefinition(f"model = {model!r}: use 1pl or 2pl")
    response_mask, solved = _check_responses(responses)
    easiness = np.log((solved.sum(0) + 0.5) / (response_mask.sum(0) - solved.sum(0) + 0.5))
    log_slope = np.zeros(response_mask.shape[1])
    for iteration in range(1, _ITERATIONS + 1):
        posterior = _compute_posterior(response_mask, solved, easiness, log_slope)
        met, right = response_mask.T @ posterior, solved.T @ posterior
        before = np.concatenate([easiness, log_slope])
        for _ in range(_STEPS):
            easiness, log_slope = _step_fisher_scoring(met, right, easiness, log_slope, shared=model == "1pl")
        share = posterior.mean(axis=0)
        mean = share @ _NODES
        easiness = easiness + np.exp(log_slope) * mean
        log_slope = log_slope + 0.5 * np.log(share @ (_NODES - mean) ** 2)
        if np.abs(np.concatenate([easiness, log_slope]) - before).max() < _CHANGE:
            slope = np.exp(log_slope)
            return ItemResponse(-easiness / slope, slope, posterior @ _NODES, iteration)
    raise BadDefinition(f"the {model} model does not converge in {_ITERATIONS} iterations: add systems")


def _check_responses(responses: Reals) -> tuple[Reals, Reals]:
    """Return which responses exist and which are correct: two arrays of 0 and 1, (systems, items)."""
    values = np.asarray(responses, np.float64)
    if values.ndim != 2 or len(values) < 2:
        raise BadDefinition(f"responses need the shape (systems, items) with at least two systems, not {values.shape}")
    response_mask = ~np.isnan(values)
    if not np.isin(values[response_mask], (0.0, 1.0)).all():
        raise BadDefinition("responses are 1 (solved), 0 (not solved) or NaN (missing)")
    for axis, what in ((0, "item"), (1, "system")):
        empty = np.flatnonzero(~response_mask.any(axis=axis))
        if len(empty):
            raise BadDefinition(f"{what} {empty[0]} has no response: leave it out")
    return response_mask.astype(np.float64), np.where(response_mask, values, 0.0)


def _compute_posterior(response_mask: Reals, solved: Reals, easiness: Reals, log_slope: Reals) -> Reals:
    """Return the posterior of each system's ability over the grid, (systems, nodes)."""
    logit = np.exp(log_slope)[:, None] * _NODES + easiness[:, None]
    log_likelihood = solved @ logit - response_mask @ np.logaddexp(0, logit) - _NODES**2 / 2
    weight = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    posterior: Reals = weight / weight.sum(axis=1, keepdims=True)
    return posterior


def _step_fisher_scoring(
    met: Reals, right: Reals, easiness: Reals, log_slope: Reals, *, shared: bool
) -> tuple[Reals, Reals]:
    """Take one step of Fisher scoring on the expected log-posterior; `met` and `right` are the expected numbers of
    systems at each node that answered each item, and that solved it, (items, nodes)."""
    along = np.exp(log_slope)[:, None] * _NODES
    probability = 0.5 * (1 + np.tanh((along + easiness[:, None]) / 2))
    rest, spread = right - met * probability, met * probability * (1 - probability)
    by_easiness = rest.sum(1) - _EASINESS_PRIOR * easiness
    by_slope = (rest * along).sum(1)
    if shared:
        step = _bound_step(by_slope.sum() / np.maximum((spread * along**2).sum(), 1e-12))
        return easiness + _bound_step(by_easiness / (spread.sum(1) + _EASINESS_PRIOR)), log_slope + step
    by_slope = by_slope - _SLOPE_PRIOR * log_slope
    a, b, c = spread.sum(1) + _EASINESS_PRIOR, (spread * along).sum(1), (spread * along**2).sum(1) + _SLOPE_PRIOR
    determinant = a * c - b * b
    return (
        easiness + _bound_step((c * by_easiness - b * by_slope) / determinant),
        log_slope + _bound_step((a * by_slope - b * by_easiness) / determinant),
    )


def _bound_step(step: Reals) -> Reals:
    """Clip a step to at most 1."""
    return np.clip(step, -1.0, 1.0)


@dataclass(frozen=True)
class Ratings:
    """Glicko-2 ratings of players, on the scale of the paper's interface (1500 the start); all of shape (players,).

    `deviation` is the rating's standard error, `volatility` how erratic the player is.
    """

    rating: Reals
    deviation: Reals
    volatility: Reals

    @classmethod
    def start(cls, players: int) -> Ratings:
        """Return the initial ratings: 1500, deviation 350, volatility 0.06."""
        return cls(np.full(players, 1500.0), np.full(players, 350.0), np.full(players, 0.06))


_SCALE = 173.7178
_START = 1500.0


def update_ratings(players: Ratings, opponents: Ratings, scores: Reals, tau: float = 0.5) -> Ratings:
    """Return the players' ratings after one rating period (Glickman 2012, steps 2 to 8).

    scores: (players, opponents), 1 where the player won, 0 where it lost, 0.5 for a draw, NaN where they did not meet.
    A player without a game keeps rating and volatility, and its deviation grows. tau bounds how fast volatility
    changes.
    """
    mu, phi = (players.rating - _START) / _SCALE, players.deviation / _SCALE
    other_mu, other_phi = (opponents.rating - _START) / _SCALE, opponents.deviation / _SCALE
    met = ~np.isnan(scores)
    weight = 1 / np.sqrt(1 + 3 * other_phi**2 / np.pi**2)
    expected = 1 / (1 + np.exp(-weight * (mu[:, None] - other_mu)))
    information = (met * weight**2 * expected * (1 - expected)).sum(1)
    surprise = (weight * np.where(met, scores - expected, 0.0)).sum(1)
    played = met.any(1)
    variance = 1 / np.where(played, information, 1.0)
    volatility = np.where(
        played, _solve_volatility(phi, variance, variance * surprise, players.volatility, tau), players.volatility
    )
    before = np.sqrt(phi**2 + volatility**2)
    after = np.where(played, 1 / np.sqrt(1 / before**2 + 1 / variance), before)
    return Ratings(_START + _SCALE * (mu + after**2 * surprise * played), _SCALE * after, volatility)


def _solve_volatility(phi: Reals, variance: Reals, delta: Reals, before: Reals, tau: float) -> Reals:
    """Step 5: solve the equation of the volatility by the Illinois method, vectorised over players."""
    a = np.log(before**2)

    def slope(x: Reals) -> Reals:
        e = np.exp(x)
        total = phi**2 + variance + e
        return e * (delta**2 - total) / (2 * total**2) - (x - a) / tau**2

    low = a.copy()
    beyond = delta**2 - phi**2 - variance
    high = np.where(beyond > 0, np.log(np.where(beyond > 0, beyond, 1.0)), a - tau)
    while (down := (beyond <= 0) & (slope(high) < 0)).any():
        high = np.where(down, high - tau, high)
    at_low, at_high = slope(low), slope(high)
    while (open_ := np.abs(high - low) > 1e-6).any():
        gap = np.where(at_high == at_low, 1.0, at_high - at_low)
        middle = np.where(open_, low + (low - high) * at_low / gap, high)
        value = slope(middle)
        crossed = value * at_high <= 0
        low = np.where(open_, np.where(crossed, high, low), low)
        at_low = np.where(open_, np.where(crossed, at_high, at_low / 2), at_low)
        high, at_high = middle, value
    root: Reals = np.exp(low / 2)
    return root


def rate_with_glicko2(responses: Reals, *, systems_a_period: int) -> tuple[Ratings, Ratings]:
    """Rate the items and the systems; an item wins against a system that does not solve it.

    The systems play all items in the matrix's order, `systems_a_period` of them in each rating period; all ratings
    begin at 1500. Raises `BadDefinition` as `fit_item_response` does, and for fewer than one system per period.
    """
    if systems_a_period < 1:
        raise BadDefinition(f"systems_a_period = {systems_a_period}: use 1 or more")
    response_mask, solved = _check_responses(responses)
    lost = np.where(response_mask > 0, 1 - solved, np.nan)
    items, systems = Ratings.start(response_mask.shape[1]), Ratings.start(len(response_mask))
    for first in range(0, len(response_mask), systems_a_period):
        now = slice(first, first + systems_a_period)
        playing = Ratings(systems.rating[now], systems.deviation[now], systems.volatility[now])
        met = lost[now]
        updated = update_ratings(playing, items, 1 - met)
        items = update_ratings(items, playing, met.T)
        for name in ("rating", "deviation", "volatility"):
            getattr(systems, name)[now] = getattr(updated, name)
    return items, systems
