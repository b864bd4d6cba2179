"""Rows of training data that stay where they are stored until a batch reads them: uint8 images in a mapped file or in
memory, and ragged token ids.

They replace a tensor of all rows. They have the operations by which rows are read, and each returns the tensor that the
same operation would return on the whole: scaled on the device, or padded to the longest row that is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...core.errors import ModelError
from ...loaders.batching.pixels import EncodedPixels, Pixels, iterate_pieces
from ...loaders.batching.tokens import Tokens


class Rows:
    """The operations by which a tensor of rows is read, of rows that are made when they are read; they never change."""

    shape: torch.Size

    def __len__(self) -> int:
        return self.shape[0]

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        raise NotImplementedError

    def index_select(self, dim: int, rows: Tensor) -> Tensor:
        assert dim == 0
        return self[rows]

    def split(self, rows: int, dim: int = 0) -> Iterator[Tensor]:
        """All rows in chunks, as `torch.split` expects."""
        assert dim == 0
        return (self[start : start + rows] for start in range(0, len(self), rows))


class TokenRows(Rows):
    """Ids (n, T), each plus 1, PAD (0) after a row's end; T is the longest row's length, and 1 at least."""

    dtype = torch.int64

    def __init__(self, ids: Tensor, offsets: Tensor, longest: int) -> None:
        """ids: (all + 1,) int32, PAD the last. offsets: (n + 1,) int64."""
        self.ids, self.offsets, self.longest = ids, offsets, longest
        self.shape = torch.Size((len(offsets) - 1, longest))

    @classmethod
    def of(cls, tokens: Tokens) -> TokenRows:
        """The rows of tokenised texts, in memory."""
        ids: NDArray[np.int32] = np.zeros(len(tokens.ids) + 1, np.int32)
        np.add(tokens.ids, 1, out=ids[:-1], casting="unsafe")
        longest = max(1, int(tokens.lengths.max(initial=1)))
        return cls(torch.from_numpy(ids), torch.from_numpy(tokens.offsets.copy()), longest)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("ids", "offsets", "longest"):
            raise AttributeError(name)
        return getattr(self.to_tensor(), name)

    def to(self, device: str | torch.device) -> TokenRows:
        return TokenRows(self.ids.to(device), self.offsets.to(device), self.longest)

    @property
    def device(self) -> torch.device:
        return self.ids.device

    @property
    def nbytes(self) -> int:
        return int(self.ids.nbytes + self.offsets.nbytes)

    @property
    def lengths(self) -> Tensor:
        """(n,) int64."""
        return self.offsets.diff()

    def at(self, rows: Tensor) -> Tensor:
        """The rows with the indices (..): (.., T), T the longest's length among them, and 1 at least."""
        flat = rows.reshape(-1).to(self.device)
        begin, stop = self.offsets[flat], self.offsets[flat + 1]
        longest = max(1, int((stop - begin).max())) if len(flat) else 1
        places = begin[:, None] + torch.arange(longest, device=self.device)
        # The last of all ids is PAD: it is read after the end of a row.
        places = torch.where(places < stop[:, None], places, len(self.ids) - 1)
        return self.ids[places].long().view(*rows.shape, longest)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        places = torch.arange(len(self), device=self.device)[rows]
        return self.at(places)

    def to_tensor(self) -> Tensor:
        """All rows, padded to the longest."""
        return self.at(torch.arange(len(self), device=self.device))


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
