"""The largest of all weighted differences of many numbers, without looking at each of them.

    max over i < j of |x_i - x_j| w_ij

for each of many draws x. Entries are dealt into tiles of TILE, like ones together. Between two tiles no difference is
larger than that of their extremes times the largest weight there: where that is less than what was found already,
nothing is computed. What is computed is computed as without tiles, so that the result is the same to the last bit.
Who needs the large ones of many draws alone says above what: a third of the pairs of tiles is then looked at.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]

TILE = 12
NEAR = 0.95
"""The pairs of tiles whose bound is no less than this share of the draw's largest are looked at first."""


class LargestPair:
    """The entries dealt into tiles. weights (M, M): w_ij, of which those above the diagonal count, all 0 or more."""

    def __init__(self, weights: Matrix) -> None:
        upper = np.triu(weights, 1)
        weights = upper + upper.T
        order = _like_together(weights)
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
        dealt = np.ascontiguousarray(draws.T)[:, self.tiles.T]  # (B, TILE, tiles)
        found = partial(self._above, above) if above else self._of_some
        return np.concatenate([found(dealt[k : k + DRAWS]) for k in range(0, len(dealt), DRAWS)])

    def _above(self, above: float, dealt: Matrix) -> NDArray[np.float64]:
        # A shade less than it takes: products are rounded.
        needed = np.full(len(self.most), np.inf)
        np.divide(above * (1 - 1e-12), self.most, out=needed, where=self.most > 0)
        apart = (dealt.max(axis=1)[:, :, None] - dealt.min(axis=1)[:, None, :]).reshape(len(dealt), -1)
        largest = np.zeros(len(dealt))
        self._raise(largest, dealt, apart > needed)
        return largest

    def _of_some(self, dealt: Matrix) -> NDArray[np.float64]:
        high, low = dealt.max(axis=1), dealt.min(axis=1)
        bounds = (high[:, :, None] - low[:, None, :]).reshape(len(dealt), -1)
        bounds *= self.most
        largest, promising = np.zeros(len(dealt)), NEAR * bounds.max(axis=1)
        for least in (promising, largest):  # what is found in the first round spares most of the second
            self._raise(largest, dealt, bounds > least[:, None])
        return largest

    def _raise(self, largest: NDArray[np.float64], dealt: Matrix, looked_at: NDArray[np.bool_]) -> None:
        """Raise each draw's largest, (B,), to that of the pairs of tiles that are looked at, (B, pairs)."""
        of, pairs = np.divmod(np.flatnonzero(looked_at), len(self.most))
        for start in range(0, len(pairs), SOME):
            some = slice(start, start + SOME)
            np.maximum.at(largest, of[some], self._within(dealt, of[some], pairs[some]))

    def _within(self, dealt: Matrix, draws: Places, pairs: Places) -> NDArray[np.float64]:
        """The largest weighted difference of one tile's entries less another's, of some draws and pairs of tiles, same
        shape."""
        one, other = np.divmod(pairs, len(self.tiles))
        apart = dealt[draws, :, one][:, :, None] - dealt[draws, :, other][:, None, :]
        apart *= self.weights[pairs]
        found: NDArray[np.float64] = apart.max(axis=(1, 2))
        return found


DRAWS = 32
SOME = 1 << 12
"""Draws, and pairs of tiles, that are worked out together: what they need lies in a processor's cache."""


def _like_together(weights: Matrix) -> Places:
    """An order of the entries in which each is followed by that of the rest which weighs most with it."""
    left, here = np.ones(len(weights), bool), 0
    order = []
    for _ in range(len(weights)):
        order.append(here)
        left[here] = False
        here = int(np.where(left, weights[here], -1.0).argmax())
    return np.array(order, np.int64)
