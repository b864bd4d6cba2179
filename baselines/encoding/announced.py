"""Pictures that will be asked about, some at a time: decoded once, all together, into one entry of the cache.

A model is asked in batches, and knows of a batch its files alone. Decoded batch by batch, a part would leave an entry
in the cache for each batch. So the harness announces a part's files before it asks, and a batch's files are found among
them by their content.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ...loaders.batching.encoded import BadPicture
from ...loaders.batching.encoded_files import EncodedFiles
from ...loaders.batching.pictures import Files, content_of, readable
from ...loaders.batching.pixels import HeldPixels, Pixels, opened

_DIGEST = 16


class AnnouncedPictures:
    """The pictures of announced columns, resized to `side` by one decoder."""

    def __init__(self, side: int, by: str) -> None:
        self.side, self.by = side, by
        self._announced: list[EncodedFiles] = []
        self._pixels: list[Pixels] = []
        self._at: dict[bytes, tuple[int, int]] = {}

    def announce(self, files: EncodedFiles) -> None:
        """Decode a column into the cache, but for pictures that cannot be decoded: these are met when a batch has
        them. What would not fit in the cache is left to the batches."""
        if any(one is files for one in self._announced):
            return
        self._announced.append(files)
        kept = files
        try:
            pixels = opened(kept, self.side, self.by)
        except BadPicture:
            kept = files[readable(files, self.by)]
            pixels = opened(kept, self.side, self.by)
        if isinstance(pixels, HeldPixels):
            number = len(self._pixels)
            self._pixels.append(pixels)
            self._at |= {_digest(kept, place): (number, place) for place in range(len(kept))}

    def of(self, files: Files) -> NDArray[np.uint8] | None:
        """The pictures of a batch, (n, side, side, 3); None where one of them was not announced."""
        if not self._at:
            return None
        there = [self._at.get(_digest(files, place)) for place in range(len(files))]
        found = np.empty((len(there), self.side, self.side, 3), np.uint8)
        for number, pixels in enumerate(self._pixels):
            mine = [(row, at[1]) for row, at in enumerate(there) if at is not None and at[0] == number]
            if mine:
                rows, places = np.array(mine).T
                found[rows] = pixels.take(places)
        return None if None in there else found


def _digest(files: Files, place: int) -> bytes:
    return blake2b(content_of(files, place), digest_size=_DIGEST).digest()
