"""Near duplicates: rows whose texts share most of their word trigrams.

The resemblance of two texts is the Jaccard coefficient of their sets of shingles (Broder 1997, On the resemblance and
containment of documents; a text of fewer than three words is one shingle). Candidates are found by MinHash signatures
in bands (a pair of resemblance 0.8 shares a band with probability 0.998, and no pair below 0.8 is reported: candidates
are compared exactly).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from .divergence import Units, find_runs, number_values, split_words

if TYPE_CHECKING:
    import pyarrow as pa

RESEMBLANCE = 0.8

_WORDS = 3
_BANDS, _HASHES = 12, 4
_CANDIDATES = 64
"""The most rows that a row is compared with per band; more rows share a band only if texts follow one template."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class ShingleSets:
    """The shingle sets of many texts: `sets` has each shingle of a row once; rows and codes ascend."""

    sets: Units

    def resembling(self, rows: Rows, among: Rows) -> NDArray[np.bool_]:
        """Return for each of `rows` whether another row of `among` has a resemblance of at least 0.8; shape as `rows`.

        A row that shares a band with more than 64 others is compared with 64 of them, which bounds the cost of texts
        that follow one template.
        """
        resembles = np.zeros(len(rows), bool)
        for bucket in self._buckets:
            order = among[np.argsort(bucket[among], kind="stable")]
            left = np.flatnonzero(~resembles)
            first, last = (np.searchsorted(bucket[order], bucket[rows[left]], side) for side in ("left", "right"))
            which, at = _expand_ranges(first, np.minimum(last - first, _CANDIDATES))
            row, candidate = rows[left[which]], order[at]
            near = (row != candidate) & (self.jaccard(row, candidate) >= RESEMBLANCE)
            resembles[left[which[near]]] = True
        return resembles

    def jaccard(self, first: Rows, second: Rows) -> NDArray[np.float64]:
        """Compute the exact Jaccard coefficient of pairs of rows; all of shape (pairs,)."""
        size = np.diff(self._bounds)
        pair, at = _expand_ranges(self._bounds[first], size[first])
        sought = second[pair] * self.sets.kinds + self.sets.code[at]
        index = np.minimum(np.searchsorted(self._keys, sought), len(self._keys) - 1)
        both = np.bincount(pair[self._keys[index] == sought], minlength=len(first))
        return np.asarray(both / (size[first] + size[second] - both))

    @cached_property
    def _bounds(self) -> Rows:
        """The offsets of each row's shingles, shape (rows + 1,)."""
        return np.searchsorted(self.sets.row, np.arange(self.sets.rows + 1))

    @cached_property
    def _keys(self) -> Rows:
        """One code for each shingle of each row, ascending."""
        return self.sets.row * self.sets.kinds + self.sets.code

    @cached_property
    def _buckets(self) -> list[NDArray[np.uint64]]:
        """The bucket of each row in each band: its minimum shingles under four hash functions, combined into one
        number."""
        base = draw_bits("minhash", np.arange(self.sets.kinds, dtype=np.uint64))[self.sets.code]
        masks, factors = (draw_bits(f"minhash/{name}", np.arange(_BANDS * _HASHES, dtype=np.uint64)) for name in "ab")
        buckets = []
        for band in range(_BANDS):
            bucket = np.zeros(self.sets.rows, np.uint64)
            for k in range(band * _HASHES, (band + 1) * _HASHES):
                hashed = (base ^ masks[k]) * (factors[k] | np.uint64(1))
                bucket = draw_bits("minhash/band", bucket ^ np.minimum.reduceat(hashed, self._bounds[:-1]))
            buckets.append(bucket)
        return buckets


def make_shingles(texts: pa.ChunkedArray) -> ShingleSets:
    """Build the shingle sets of a text column."""
    import pyarrow.compute as pc

    singles = split_words(texts)
    triples = find_runs(singles, _WORDS)
    short = np.ones(len(texts), bool)
    short[triples.row] = False
    own, kinds = number_values(pc.utf8_trim_whitespace(texts.filter(short)).combine_chunks())
    row = np.concatenate([triples.row, np.flatnonzero(short)])
    code = np.concatenate([triples.code, triples.kinds + own])
    kinds += triples.kinds
    keys = np.sort(row * kinds + code)
    keys = keys[np.diff(keys, prepend=-1) > 0]
    return ShingleSets(Units(keys // kinds, keys % kinds, kinds, len(texts)))


def measure_max_overlap(texts: Sequence[str], separator: str, among: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Split texts at `separator`; return for each text the share of its pieces that occur in the one other text of
    `among` that has most of them; shape (texts,)."""
    pieces = [{piece.strip() for piece in text.split(separator) if piece.strip()} for text in texts]
    holders: dict[str, list[int]] = {}
    for index in np.flatnonzero(among).tolist():
        for piece in pieces[index]:
            holders.setdefault(piece, []).append(index)
    shares = np.zeros(len(pieces))
    for index, own in enumerate(pieces):
        counts = Counter(other for piece in own for other in holders.get(piece, ()) if other != index)
        shares[index] = max(counts.values(), default=0) / max(len(own), 1)
    return shares


def _expand_ranges(first: Rows, count: Rows) -> tuple[Rows, Rows]:
    """Concatenate ranges, each of length `count` from `first`; return the index of each number's range, and the
    numbers."""
    which = np.repeat(np.arange(len(first)), count)
    return which, np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
