"""All pairs at once: which differences are larger than chance would make any of them?

With M entries there are M (M - 1) / 2 differences, and the largest of them looks large though all entries be equal. The
max-t rule asks of each |t_ij| = |value_i - value_j| / se_ij to exceed its own critical value, such that

    P(any pair exceeds) = 1 - level        where all are equal

which holds for any pattern of true ties as well (Romano and Wolf, JASA 2005; for ranks Mogstad, Romano, Shaikh and
Wilhelm, REStud 2024). Standard errors differ in what they rest on: 10,000 rows, or 5 seeds. So the critical values have
one tail probability in common, not one t: it is found from Gaussian draws of the joint covariance, and each pair then
takes the t quantile of its own degrees of freedom: a Gaussian copula with t margins.

With few degrees of freedom to an entry (20 clusters, 5 seeds) the estimated covariance shows more structure than there
is: of 40 equal entries on 6 clusters some differed significantly in 57 % of trials. There, KNOWN or fewer to an entry,
pairs count as independent, 1 - level^(1 / pairs), which holds for every covariance (Sidak, JASA 1967) and costs some
three per cent of a critical value.

This is the single-step rule: a pair differs significantly exactly where its simultaneous interval excludes 0, and where
its adjusted p is at most 1 - level.

The largest of all weighted differences of many numbers is found without looking at each of them (`LargestPair`):

    max over i < j of |x_i - x_j| w_ij

for each of many draws x. Entries are dealt into tiles of TILE, like ones together. Between two tiles no difference is
larger than that of their extremes times the largest weight there: where that is less than what was found already,
nothing is computed. What is computed is computed as without tiles, so that the result is the same to the last bit.
Who needs the large ones of many draws alone says above what: a third of the pairs of tiles is then looked at.
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
"""Gaussian draws: the tail probability then has a Monte Carlo error of about 4 % of itself."""

KNOWN = 2
"""Degrees of freedom to an entry from which on the structure of the covariance is taken as known."""

CAREFUL = 3.0
"""Standard errors of a share in the first draws by which the others are taken to be smaller: should that be too few,
all draws are looked at again."""

NODES = 20
LARGE = 1_000
FIRST = 1_000
_NORMAL = NormalDist()


@dataclass(frozen=True)
class MaxT:
    """All pairs of M entries, compared at once; rows minus columns.

    tail: the two-sided tail probability that all pairs have in common. critical (M, M): its t quantile for each pair,
    0 on the diagonal. pairs: how many pairs have a difference with noise. stream: the name that seeds the draws; None
    where pairs count as independent."""

    joint_covariance: JointCovariance
    level: float
    tail: float
    critical: Matrix
    pairs: int
    stream: str | None

    @cached_property
    def maxima(self) -> NDArray[np.float64] | None:
        """The largest |difference| / se of each draw, rising, (DRAWS,); None where there are no draws."""
        return None if self.stream is None else _draw_largest(self.joint_covariance, DRAWS, self.stream)

    @cached_property
    def reach(self) -> Matrix:
        """Half the width of each simultaneous interval, (M, M): with probability `level` every true difference lies
        within `joint_covariance.difference` - reach and + reach."""
        return self.critical * self.joint_covariance.se

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Which pairs differ significantly, (M, M)."""
        return np.abs(self.joint_covariance.t) > self.critical

    def adjusted(self) -> Matrix:
        """The p of each pair, adjusted for all of them, (M, M): the chance that any of them would be as surprising if
        all entries were equal. 1 on the diagonal; at least 1 / (draws + 1) where there are draws."""
        first, second = np.triu_indices(len(self.joint_covariance), 1)
        p = self.joint_covariance.p(first, second)
        if self.maxima is None:
            with np.errstate(divide="ignore"):  # the log of 1 - 1, which gives 1 again
                p = -np.expm1(max(self.pairs, 1) * np.log1p(-p))
        else:
            surprise = np.array([_find_normal_quantile(probability) for probability in p.tolist()])
            above = len(self.maxima) - np.searchsorted(self.maxima, surprise, side="left")
            p = (above + 1) / (len(self.maxima) + 1)
        p_values = np.ones_like(self.critical)
        p_values[first, second] = p_values[second, first] = np.minimum(p, 1.0)
        return p_values


def compare_all_pairs(joint_covariance: JointCovariance, level: float = LEVEL, stream: str = "max-t") -> MaxT:
    """Compare all pairs of entries at once, with `level` (in (0, 1)) the chance that no two equal ones seem to differ.

    stream: the name that seeds the draws. Another NumPy may draw other numbers: the critical values then move within
    their Monte Carlo error, some tenths of a per cent. Time: at most DRAWS x M^2 / 2 steps, in blocks; of MANY entries
    or more about DRAWS x M^2 / 200."""
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
    """The number that the largest |difference| / se of a draw exceeds in 1 - level of the draws: `_draw_largest` at
    that place. Of many entries the first draws say about where it is, and of the others only larger ones are looked
    for."""
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
    """The largest |difference| / se of each draw of noise, rising, shape (draws,)."""
    inverse, blocks = _invert_errors(joint_covariance), joint_covariance.noise(draws, stream)
    if len(joint_covariance) < MANY:
        return np.sort(np.concatenate([_find_largest(noise, inverse) for noise in blocks]))
    pair = LargestPair(inverse)
    return np.sort(np.concatenate([pair.of(noise) for noise in blocks]))


def _invert_errors(joint_covariance: JointCovariance) -> Matrix:
    """1 / se of each pair, (M, M); 0 where a difference has no noise."""
    inverse = np.zeros_like(joint_covariance.se)
    np.divide(1.0, joint_covariance.se, out=inverse, where=joint_covariance.se > 0)
    return inverse


def _find_largest(noise: Matrix, inverse: Matrix) -> NDArray[np.float64]:
    """max |noise_i - noise_j| inverse_ij of each draw (M, draws), shape (draws,), in so many pieces as lie in cache."""
    largest = np.zeros(noise.shape[1])
    room = np.empty_like(noise)
    for entry in range(len(noise) - 1):
        rest = np.subtract(noise[entry + 1 :], noise[entry], out=room[entry + 1 :])
        rest *= inverse[entry, entry + 1 :, None]
        np.maximum(largest, rest.max(axis=0), out=largest)
        np.maximum(largest, -rest.min(axis=0), out=largest)
    return largest


def _compute_normal_tail(z: float) -> float:
    """P(|N| > z)."""
    return 2 * _NORMAL.cdf(-z)


def _find_normal_quantile(p: float) -> float:
    """The z with P(|N| > z) = p."""
    return inf if p <= 0 else -_NORMAL.inv_cdf(min(p, 1.0) / 2) if p < 1 else 0.0


def find_t_quantiles(tail: float, df: Matrix) -> Matrix:
    """The t with P(|T| > t) = tail for each of `df` degrees of freedom, same shape; relative error below 1e-6.

    From LARGE on by the expansion in 1 / df (Abramowitz and Stegun 26.7.5). Below, few distinct df are each looked for,
    and many are interpolated: log t is smooth in 1 / sqrt(df), and is known at NODES Chebyshev points of its range."""
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
    if len(np.unique(df[:FIRST])) <= NODES:  # else they are more, and nobody needs to know how many
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
"""The pairs of tiles whose bound is no less than this share of the draw's largest are looked at first."""


class LargestPair:
    """The entries dealt into tiles. weights (M, M): w_ij, of which those above the diagonal count, all 0 or more."""

    def __init__(self, weights: Matrix) -> None:
        upper = np.triu(weights, 1)
        weights = upper + upper.T
        order = _order_by_weight(weights)
        # The last tile is filled up with an entry that is there already, whose weights are then 0.
        filled = np.append(order, np.full(-len(order) % TILE, order[-1]))
        square = weights[np.ix_(filled, filled)]
        square[len(order) :] = square[:, len(order) :] = 0.0
        self.tiles = filled.reshape(-1, TILE)
        # (tiles, tiles, TILE, TILE), flat in the first two
        by_tiles = square.reshape(len(self.tiles), TILE, -1, TILE).swapaxes(1, 2)
        self.weights = np.ascontiguousarray(by_tiles).reshape(-1, TILE, TILE)
        self.most = self.weights.max(axis=(1, 2))

    def of(self, draws: Matrix, above: float = 0.0) -> NDArray[np.float64]:
        """For draws (M, B) the largest of each, (B,); where that is no more than `above`, any number up to it."""
        tiled = np.ascontiguousarray(draws.T)[:, self.tiles.T]  # (B, TILE, tiles)
        search_block = partial(self._above, above) if above else self._of_some
        return np.concatenate([search_block(tiled[k : k + DRAWS_AT_ONCE]) for k in range(0, len(tiled), DRAWS_AT_ONCE)])

    def _above(self, above: float, tiled: Matrix) -> NDArray[np.float64]:
        # A shade less than it takes: products are rounded.
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
        for least in (promising, largest):  # what is found in the first round spares most of the second
            self._raise(largest, tiled, bounds > least[:, None])
        return largest

    def _raise(self, largest: NDArray[np.float64], tiled: Matrix, looked_at: NDArray[np.bool_]) -> None:
        """Raise each draw's largest, (B,), to that of the pairs of tiles that are looked at, (B, pairs)."""
        of, pairs = np.divmod(np.flatnonzero(looked_at), len(self.most))
        for start in range(0, len(pairs), PAIRS_AT_ONCE):
            some = slice(start, start + PAIRS_AT_ONCE)
            np.maximum.at(largest, of[some], self._within(tiled, of[some], pairs[some]))

    def _within(self, tiled: Matrix, draws: Places, pairs: Places) -> NDArray[np.float64]:
        """The largest weighted difference of one tile's entries less another's, of some draws and pairs of tiles, same
        shape."""
        tile, other_tile = np.divmod(pairs, len(self.tiles))
        gaps = tiled[draws, :, tile][:, :, None] - tiled[draws, :, other_tile][:, None, :]
        gaps *= self.weights[pairs]
        largest: NDArray[np.float64] = gaps.max(axis=(1, 2))
        return largest


DRAWS_AT_ONCE = 32
PAIRS_AT_ONCE = 1 << 12
"""Draws, and pairs of tiles, that are worked out together: what they need lies in a processor's cache."""


def _order_by_weight(weights: Matrix) -> Places:
    """An order of the entries in which each is followed by that of the rest which weighs most with it."""
    left, entry = np.ones(len(weights), bool), 0
    order = []
    for _ in range(len(weights)):
        order.append(entry)
        left[entry] = False
        entry = int(np.where(left, weights[entry], -1.0).argmax())
    return np.array(order, np.int64)
