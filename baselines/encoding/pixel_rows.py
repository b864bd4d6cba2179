"""Images of training rows that stay uint8 where they are stored (a mapped file, memory) until a batch reads them.

`PixelRows` replaces a tensor of all rows. It has the few operations by which rows are read, and each returns the tensor
that the same operation would return on the whole, scaled on the device.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ...loaders.batching.pixels import EncodedPixels, Pixels, iterate_pieces
from .token_rows import Rows


class PixelRows(Rows):
    """Rows (n, width) float32 on a device: pixels (n, ..) uint8 over `scale`, flat."""

    dtype = torch.float32

    def __init__(self, pixels: Pixels, scale: float, device: str | torch.device = "cpu") -> None:
        self.pixels, self.scale, self.device = pixels, scale, torch.device(device)
        self.shape = torch.Size((pixels.shape[0], prod(pixels.shape[1:])))
        # On the device: there, division by a host number multiplies by its inverse, which gives another result.
        self._over = torch.full((1,), scale, device=self.device)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModelError(
            f"setting feed = 'streamed': this algorithm reads all training rows at once (by {name}): "
            "set feed = 'resident', with a smaller side if they do not fit"
        )

    def to(self, device: str | torch.device) -> PixelRows:
        return PixelRows(self.pixels, self.scale, device)

    @property
    def on_the_fly(self) -> bool:
        """Whether images are decoded at each reading."""
        return isinstance(self.pixels, EncodedPixels)

    def at(self, rows: Tensor) -> Tensor:
        """The rows with the indices (..), which are on the host: (.., width)."""
        return self._scaled(torch.from_numpy(self.pixels.take(rows.reshape(-1).numpy()))).view(*rows.shape, -1)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        places = torch.arange(len(self))[rows] if isinstance(rows, slice) else rows.cpu()
        if places.dtype == torch.bool:
            places = places.nonzero()[:, 0]
        return self.at(places)

    def to_tensor(self, device: str | torch.device) -> Tensor:
        """All rows as a tensor on a device."""
        there, start = self.to(device), 0
        tensor = torch.empty(self.shape, dtype=self.dtype, device=device)
        for piece in iterate_pieces(self.pixels):
            tensor[start : start + len(piece)] = there._scaled(torch.from_numpy(piece))
            start += len(piece)
        return tensor

    def _scaled(self, pixels: Tensor) -> Tensor:
        there = pixels.to(self.device, non_blocking=True).reshape(len(pixels), -1)
        return there.to(self.dtype).div_(self._over)


def find_largest_value(pixels: Pixels) -> int:
    """The largest value among all images; 0 if there are none."""
    maximum = 0
    for piece in iterate_pieces(pixels):
        maximum = max(maximum, int(piece.max(initial=0)))
        if maximum == 255 and not isinstance(pixels, EncodedPixels):  # no larger one can come; files may yet be broken
            break
    return maximum
