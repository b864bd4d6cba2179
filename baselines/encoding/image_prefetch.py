"""Decode the images of a part once, all together, into one entry of the cache, before its batches are predicted.

A model is given batches, and knows only the files of a batch. If each batch were decoded separately, a part would leave
an entry in the cache for each batch. So the harness announces a part's files before it predicts them, and the files of
a batch are found among them by their content.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ...loaders.batching.encoded import BadImage, EncodedFiles
from ...loaders.batching.images import Files, find_readable_images, read_content
from ...loaders.batching.pixels import ArrayPixels, Pixels, open_pixels

_DIGEST = 16


class ImagePrefetch:
    """The images of announced columns, resized to `side` by one decoder."""

    def __init__(self, side: int, by: str) -> None:
        self.side, self.by = side, by
        self._announced: list[EncodedFiles] = []
        self._pixels: list[Pixels] = []
        self._at: dict[bytes, tuple[int, int]] = {}

    def announce(self, files: EncodedFiles) -> None:
        """Decode a column into the cache, without images that cannot be decoded: these are errors of their batch.
        Images that do not fit in the cache are decoded batch by batch."""
        if any(column is files for column in self._announced):
            return
        self._announced.append(files)
        readable_files = files
        try:
            pixels = open_pixels(readable_files, self.side, self.by)
        except BadImage:
            readable_files = files[find_readable_images(files, self.by)]
            pixels = open_pixels(readable_files, self.side, self.by)
        if isinstance(pixels, ArrayPixels):
            number = len(self._pixels)
            self._pixels.append(pixels)
            self._at |= {
                _digest_content(readable_files, index): (number, index) for index in range(len(readable_files))
            }

    def of(self, files: Files) -> NDArray[np.uint8] | None:
        """The images of a batch, (n, side, side, 3); None if one of them was not announced."""
        if not self._at:
            return None
        locations = [self._at.get(_digest_content(files, index)) for index in range(len(files))]
        images = np.empty((len(locations), self.side, self.side, 3), np.uint8)
        for number, pixels in enumerate(self._pixels):
            matches = [(row, at[1]) for row, at in enumerate(locations) if at is not None and at[0] == number]
            if matches:
                rows, places = np.array(matches).T
                images[rows] = pixels.take(places)
        return None if None in locations else images


def _digest_content(files: Files, index: int) -> bytes:
    return blake2b(read_content(files, index), digest_size=_DIGEST).digest()
