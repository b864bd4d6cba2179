"""Simultaneous comparison of all pairs of entries by the max-t test.

Among M (M - 1) / 2 differences, the largest is large even if all M entries are equal. The max-t test requires each
|t_ij| = |value_i - value_j| / se_ij to exceed its own critical value, such that

    P(any pair exceeds) = 1 - level        if all entries are equal

which also controls the error for any pattern of true ties (Romano and Wolf, JASA 2005; for ranks Mogstad, Romano,
Shaikh and Wilhelm, REStud 2024). The standard errors have different degrees of freedom, such as from 10,000 rows or 5
seeds, so the critical values share a tail probability instead of a t value: it is estimated from Gaussian draws of the
joint covariance, and each pair has the t quantile for its own degrees of freedom (a Gaussian copula with t margins).

With few degrees of freedom relative to the number of entries (20 clusters, 5 seeds), the estimated covariance has
spurious structure: of 40 equal entries on 6 clusters, some differed significantly in 57 % of trials. With fewer than
KNOWN degrees of freedom per entry, pairs are therefore treated as independent, with the tail probability
1 - level^(1 / pairs), which is valid for every covariance (Sidak, JASA 1967) and increases critical values by about
three per cent.

This is the single-step procedure: a pair differs significantly if and only if its simultaneous interval excludes 0, or
equivalently if its adjusted p-value is at most 1 - level.

The largest weighted difference is found without evaluating all pairs (`LargestPair`):

    max over i < j of |x_i - x_j| w_ij

for each of many draws x. Entries are grouped into tiles of TILE similar entries. No difference between two tiles is
larger than that of their extremes times their largest weight: if this bound is below the largest difference so far, the
pair of tiles is skipped. The results are bitwise identical to those without tiles. If only draws with a maximum above a
threshold are needed, about a third of the pairs of tiles is evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from math import inf, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from .confidence_interval import LEVEL
from .joint_covariance import MANY, JointCovariance, Matrix
from .student_t import find_two_sided_quantile

DRAWS = 9_999
"""The number of Gaussian draws: the tail probability has a relative Monte Carlo error of about 4 %."""

KNOWN = 2
"""The minimum degrees of freedom per entry for which the estimated covariance is treated as known."""

CAREFUL = 3.0
"""Safety margin, in standard errors of a share of the first draws, below which the other draws are not evaluated. If it
turns out too small, all draws are evaluated."""

NODES = 20
LARGE = 1_000
FIRST = 1_000
_NORMAL = NormalDist()


@dataclass(frozen=True)
class MaxT:
    """The simultaneous comparison of all pairs of M entries; rows minus columns.

    tail: the two-sided tail probability common to all pairs. critical (M, M): its t quantile for each pair, 0 on the
    diagonal. pairs: the number of pairs whose difference has noise. stream: the name that seeds the draws; None if
    pairs are treated as independent."""

    joint_covariance: JointCovariance
    level: float
    tail: float
    critical: Matrix
    pairs: int
    stream: str | None

    @cached_property
    def maxima(self) -> NDArray[np.float64] | None:
        """The largest |difference| / se of each draw, ascending, (DRAWS,); None if there are no draws."""
        return None if self.stream is None else _draw_largest(self.joint_covariance, DRAWS, self.stream)

    @cached_property
    def reach(self) -> Matrix:
        """The half-width of each simultaneous interval, (M, M): with probability `level` all true differences are
        within `joint_covariance.difference` - reach and + reach."""
        return self.critical * self.joint_covariance.se

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Return which pairs differ significantly, (M, M)."""
        return np.abs(self.joint_covariance.t) > self.critical

    def adjusted(self) -> Matrix:
        """Compute the p-value of each pair, adjusted for all pairs, (M, M): the probability that any pair is at least
        as extreme if all entries are equal. 1 on the diagonal; at least 1 / (draws + 1) if there are draws."""
        first, second = np.triu_indices(len(self.joint_covariance), 1)
        p = self.joint_covariance.p(first, second)
        if self.maxima is None:
            with np.errstate(divide="ignore"):  # log(1 - 1) is -inf, and the result is 1
                p = -np.expm1(max(self.pairs, 1) * np.log1p(-p))
        else:
            surprise = np.array([_find_normal_quantile(probability) for probability in p.tolist()])
            above = len(self.maxima) - np.searchsorted(self.maxima, surprise, side="left")
            p = (above + 1) / (len(self.maxima) + 1)
        p_values = np.ones_like(self.critical)
        p_values[first, second] = p_values[second, first] = np.minimum(p, 1.0)
        return p_values


def compare_all_pairs(joint_covariance: JointCovariance, level: float = LEVEL, stream: str = "max-t") -> MaxT:
    """Compare all pairs of entries simultaneously: with probability `level`, in (0, 1), no two equal entries differ
    significantly.

    stream: the name that seeds the draws. Another version of NumPy may draw different numbers: critical values then
    change within their Monte Carlo error, some tenths of a per cent. Time: at most DRAWS x M^2 / 2 steps, in blocks;
    for MANY entries or more, about DRAWS x M^2 / 200."""
    if not 0 < level < 1:
        raise ValueError(f"level {level} must lie in (0, 1)")
    pairs = int(np.count_nonzero(np.triu(joint_covariance.variance)))
    if pairs < 2 or np.median(joint_covariance.df[joint_covariance.variance > 0]) < KNOWN * len(joint_covariance):
        draw_stream, tail = None, -float(np.expm1(np.log(level) / max(pairs, 1)))
    else:
        draw_stream, tail = stream, _compute_normal_tail(_find_exceeded_value(joint_covariance, DRAWS, stream, level))
    critical = find_t_quantiles(tail, joint_covariance.df)
    np.fill_diagonal(critical, 0.0)
    return MaxT(joint_covariance, level, tail, critical, pairs, draw_stream)


def _find_exceeded_value(joint_covariance: JointCovariance, draws: int, stream: str, level: float) -> float:
    """Return the value that the largest |difference| / se exceeds in a share 1 - level of the draws, as from
    `_draw_largest`. For many entries, the first draws give a lower bound, and only larger values are searched in the
    others."""
    index = int(np.ceil(level * (draws + 1))) - 1
    if len(joint_covariance) >= MANY:
        pair, blocks = LargestPair(_invert_errors(joint_covariance)), joint_covariance.noise(draws, stream)
        first = pair.of(next(blocks))
        share = level - CAREFUL * sqrt(level * (1 - level) / len(first))
        above = float(np.quantile(first, min(max(share, 0.0), 1.0)))
        largest = np.concatenate([first, *(pair.of(noise, above) for noise in blocks)])
        if np.count_nonzero(largest > above) >= draws - index:
            return float(np.sort(largest)[index])
    return float(_draw_largest(joint_covariance, draws, stream)[index])


def _draw_largest(joint_covariance: JointCovariance, draws: int, stream: str) -> NDArray[np.float64]:
    """Compute the largest |difference| / se of each draw of noise, ascending, shape (draws,)."""
    inverse, blocks = _invert_errors(joint_covariance), joint_covariance.noise(draws, stream)
    if len(joint_covariance) < MANY:
        return np.sort(np.concatenate([_find_largest(noise, inverse) for noise in blocks]))
    pair = LargestPair(inverse)
    return np.sort(np.concatenate([pair.of(noise) for noise in blocks]))


def _invert_errors(joint_covariance: JointCovariance) -> Matrix:
    """Return 1 / se of each pair, (M, M); 0 if the difference has no noise."""
    inverse = np.zeros_like(joint_covariance.se)
    np.divide(1.0, joint_covariance.se, out=inverse, where=joint_covariance.se > 0)
    return inverse


def _find_largest(noise: Matrix, inverse: Matrix) -> NDArray[np.float64]:
    """Compute max |noise_i - noise_j| inverse_ij of each draw (M, draws), shape (draws,), in pieces that fit in
    cache."""
    largest = np.zeros(noise.shape[1])
    room = np.empty_like(noise)
    for entry in range(len(noise) - 1):
        rest = np.subtract(noise[entry + 1 :], noise[entry], out=room[entry + 1 :])
        rest *= inverse[entry, entry + 1 :, None]
        np.maximum(largest, rest.max(axis=0), out=largest)
        np.maximum(largest, -rest.min(axis=0), out=largest)
    return largest


def _compute_normal_tail(z: float) -> float:
    """Compute P(|N| > z)."""
    return 2 * _NORMAL.cdf(-z)


def _find_normal_quantile(p: float) -> float:
    """Find z with P(|N| > z) = p."""
    return inf if p <= 0 else -_NORMAL.inv_cdf(min(p, 1.0) / 2) if p < 1 else 0.0


def find_t_quantiles(tail: float, df: Matrix) -> Matrix:
    """Find t with P(|T| > t) = tail for each of the degrees of freedom `df`, same shape; relative error below 1e-6.

    Uses the expansion in 1 / df (Abramowitz and Stegun 26.7.5) for df of at least LARGE. Below, few distinct df are
    solved individually, and many are interpolated: log t is smooth in 1 / sqrt(df), and is computed at NODES Chebyshev
    points of its range."""
    quantiles = _expand_quantiles(_find_normal_quantile(tail), df)
    few = df < LARGE
    if few.any():
        quantiles[few] = _search_quantiles(tail, df[few])
    return quantiles


def _expand_quantiles(z: float, df: Matrix) -> Matrix:
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + (first + (second + third / df) / df) / df


def _search_quantiles(tail: float, df: NDArray[np.float64]) -> NDArray[np.float64]:
    if len(np.unique(df[:FIRST])) <= NODES:  # otherwise there are too many, and the exact number is not needed
        distinct, where = np.unique(df, return_inverse=True)
        if len(distinct) <= NODES:
            return np.array([find_two_sided_quantile(1 - tail, each_df) for each_df in distinct.tolist()])[where]
    low, high = 1 / sqrt(df.max()), 1 / sqrt(df.min())
    points = np.polynomial.chebyshev.chebpts1(NODES)
    at = (low + high) / 2 + points * (high - low) / 2
    logs = np.log([find_two_sided_quantile(1 - tail, 1 / x**2) for x in at.tolist()])
    curve = np.polynomial.chebyshev.chebfit(points, logs, NODES - 1)
    x = (2 / np.sqrt(df) - low - high) / (high - low)
    quantiles: NDArray[np.float64] = np.exp(np.polynomial.chebyshev.chebval(x, curve))
    return quantiles


Places = NDArray[np.int64]

TILE = 12
NEAR = 0.95
"""Pairs of tiles whose bound is at least this share of the draw's largest bound are evaluated first."""


class LargestPair:
    """The entries grouped into tiles. weights (M, M): non-negative w_ij, of which only those above the diagonal
    count."""

    def __init__(self, weights: Matrix) -> None:
        upper = np.triu(weights, 1)
        weights = upper + upper.T
        order = _order_by_weight(weights)
        # The last tile is padded with copies of an entry, with weights of 0.
        filled = np.append(order, np.full(-len(order) % TILE, order[-1]))
        square = weights[np.ix_(filled, filled)]
        square[len(order) :] = square[:, len(order) :] = 0.0
        self.tiles = filled.reshape(-1, TILE)
        # (tiles, tiles, TILE, TILE), flat in the first two
        by_tiles = square.reshape(len(self.tiles), TILE, -1, TILE).swapaxes(1, 2)
        self.weights = np.ascontiguousarray(by_tiles).reshape(-1, TILE, TILE)
        self.most = self.weights.max(axis=(1, 2))

    def of(self, draws: Matrix, above: float = 0.0) -> NDArray[np.float64]:
        """Compute the largest difference of each of the draws (M, B), (B,); if it is at most `above`, any value up to
        it."""
        tiled = np.ascontiguousarray(draws.T)[:, self.tiles.T]  # (B, TILE, tiles)
        search_block = partial(self._above, above) if above else self._of_some
        return np.concatenate([search_block(tiled[k : k + DRAWS_AT_ONCE]) for k in range(0, len(tiled), DRAWS_AT_ONCE)])

    def _above(self, above: float, tiled: Matrix) -> NDArray[np.float64]:
        # Slightly below the exact threshold, since products are rounded.
        needed = np.full(len(self.most), np.inf)
        np.divide(above * (1 - 1e-12), self.most, out=needed, where=self.most > 0)
        gaps = (tiled.max(axis=1)[:, :, None] - tiled.min(axis=1)[:, None, :]).reshape(len(tiled), -1)
        largest = np.zeros(len(tiled))
        self._raise(largest, tiled, gaps > needed)
        return largest

    def _of_some(self, tiled: Matrix) -> NDArray[np.float64]:
        high, low = tiled.max(axis=1), tiled.min(axis=1)
        bounds = (high[:, :, None] - low[:, None, :]).reshape(len(tiled), -1)
        bounds *= self.most
        largest, promising = np.zeros(len(tiled)), NEAR * bounds.max(axis=1)
        for least in (promising, largest):  # the first round makes most of the second unnecessary
            self._raise(largest, tiled, bounds > least[:, None])
        return largest

    def _raise(self, largest: NDArray[np.float64], tiled: Matrix, looked_at: NDArray[np.bool_]) -> None:
        """Update each draw's largest difference, (B,), with the pairs of tiles to evaluate, (B, pairs)."""
        of, pairs = np.divmod(np.flatnonzero(looked_at), len(self.most))
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            some = slice(start, start + PAIRS_AT_ONCE)
            np.maximum.at(largest, of[some], self._within(tiled, of[some], pairs[some]))

    def _within(self, tiled: Matrix, draws: Places, pairs: Places) -> NDArray[np.float64]:
        """Compute the largest weighted difference between two tiles' entries for some draws and pairs of tiles, same
        shape."""
        tile, other_tile = np.divmod(pairs, len(self.tiles))
        gaps = tiled[draws, :, tile][:, :, None] - tiled[draws, :, other_tile][:, None, :]
        gaps *= self.weights[pairs]
        largest: NDArray[np.float64] = gaps.max(axis=(1, 2))
        return largest


DRAWS_AT_ONCE = 32
PAIRS_AT_ONCE = 1 << 12
"""The numbers of draws and of pairs of tiles that are evaluated together, to fit in the processor's cache."""


def _order_by_weight(weights: Matrix) -> Places:
    """Order the entries such that each is followed by the remaining entry with the largest weight to it."""
    left, entry = np.ones(len(weights), bool), 0
    order = []
    for _ in range(len(weights)):
        order.append(entry)
        left[entry] = False
        entry = int(np.where(left, weights[entry], -1.0).argmax())
    return np.array(order, np.int64)
