"""Images of training rows that stay uint8 where they are stored (a mapped file, memory) until a batch reads them.

`PixelRows` replaces a tensor of all rows. It has the few operations by which rows are read, and each returns the tensor
that the same operation would return on the whole, scaled on the device. A thread gathers announced rows ahead, on a GPU
into pinned memory.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ...loaders.batching.pixels import EncodedPixels, Pixels, iterate_pieces
from .token_rows import Rows


@dataclass
class _Slot:
    """A host buffer for the rows of one step. `free`: the event after which the device has read them."""

    bytes: Tensor
    free: Any = None


class PixelRows(Rows):
    """Rows (n, width) float32 on a device: pixels (n, ..) uint8 over `scale`, flat."""

    dtype = torch.float32

    def __init__(self, pixels: Pixels, scale: float, device: str | torch.device = "cpu") -> None:
        self.pixels, self.scale, self.device = pixels, scale, torch.device(device)
        self.shape = torch.Size((pixels.shape[0], prod(pixels.shape[1:])))
        # On the device: there, division by a host number multiplies by its inverse, which gives another result.
        self._over = torch.full((1,), scale, device=self.device)
        self._ahead: tuple[Tensor, Future[_Slot]] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._slots: list[_Slot] = []

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

    @property
    def key(self) -> str:
        """A key that identifies these rows."""
        return f"{self.pixels.key}/{self.scale!r}"

    def expect(self, rows: Tensor) -> None:
        """Begin to gather the rows (..) of the next step, given by index on the host."""
        flat = rows.reshape(-1)
        if self._ahead is not None and torch.equal(self._ahead[0], flat):
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1)
        self._ahead = flat, self._thread.submit(self._gather, flat)

    def at(self, rows: Tensor) -> Tensor:
        """The rows with the indices (..), which are on the host: (.., width)."""
        flat = rows.reshape(-1)
        ahead, self._ahead = self._ahead, None
        if ahead is not None and torch.equal(ahead[0], flat):
            slot = ahead[1].result()
            pixels = self._scaled(slot.bytes[: len(flat)])
            if self.device.type == "cuda":
                slot.free = torch.cuda.Event()  # type: ignore[no-untyped-call]
                slot.free.record()
            self._slots.append(slot)
        else:
            pixels = self._scaled(torch.from_numpy(self.pixels.take(flat.numpy())))
        return pixels.view(*rows.shape, self.shape[1])

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        places = torch.arange(len(self))[rows] if isinstance(rows, slice) else rows.cpu()
        if places.dtype == torch.bool:
            places = places.nonzero()[:, 0]
        pixels = self._scaled(torch.from_numpy(self.pixels.take(places.reshape(-1).numpy())))
        return pixels.view(*places.shape, self.shape[1])

    def to_tensor(self, device: str | torch.device) -> Tensor:
        """All rows as a tensor on a device."""
        there, start = self.to(device), 0
        tensor = torch.empty(self.shape, dtype=self.dtype, device=device)
        for piece in iterate_pieces(self.pixels):
            tensor[start : start + len(piece)] = there._scaled(torch.from_numpy(piece))
            start += len(piece)
        return tensor

    def _gather(self, flat: Tensor) -> _Slot:
        """Fill a slot that is no longer read."""
        slot = next((candidate for candidate in self._slots if len(candidate.bytes) >= len(flat)), None)
        if slot is None:
            room = (len(flat), *self.pixels.shape[1:])
            slot = _Slot(torch.empty(room, dtype=torch.uint8, pin_memory=self.device.type == "cuda"))
            self._slots = []
        else:
            self._slots.remove(slot)
        if slot.free is not None:
            slot.free.synchronize()
        self.pixels.take(flat.numpy(), slot.bytes[: len(flat)].numpy())
        return slot

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
