"""Where the trainer's pictures lie: all of them on the device, or streamed to it step by step. The setting `feed`:

    resident  float32 on the device: the fastest where they fit
    streamed  uint8 in a mapped file or in memory; the rows of a step are gathered by a thread while the step before is
              computed, and scaled on the device
    auto      resident where all rows take at most a quarter of the memory that the device has free, else streamed

The rows of a step are the same, and so are their values. Only pictures are streamed: a task's one input, of uint8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from ...core.errors import ModelError
from ...core.progress import say
from ...loaders.cache.limit import size_in_words
from ..encoding.pixel_rows import PixelRows
from .sampler import Data

SHARE = 0.25
"""Of the free memory, that all rows may take."""


def placed(data: Data, feed: str, device: str) -> Data:
    """`data` on a device, its pictures as `feed` says. `ModelError` where it asks for streaming what is no picture."""
    lazy = list(_pictures(data))
    if feed == "streamed" and not lazy:
        raise ModelError(
            "setting feed = 'streamed': only pictures are streamed, and this task has no single input of uint8 pixels: "
            "leave feed at auto"
        )
    size = sum(4 * len(one) * one.shape[1] for one in lazy)
    if feed == "auto" and size > (most := int(SHARE * free_memory(device))):
        say(
            f"the pictures take {size_in_words(size)} as float32, more than {size_in_words(most)}: they stay uint8 and "
            "are streamed to the device (feed = 'streamed')"
        )
        feed = "streamed"
    if feed == "streamed":
        return data.to(device)
    return _mapped(data, lambda x: x.whole(device)).to(device)


def free_memory(device: str) -> int:
    """The bytes that a device has free; of a CPU's, those that can be had without swapping."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 8 * 2**30  # another system: what most machines have


def _pictures(data: Data) -> Iterator[PixelRows]:
    every = (*data.inputs, *(data.unlabelled or ()))
    yield from (cast(PixelRows, x) for x in every if isinstance(x, PixelRows))
    for held in data.held.values():
        yield from _pictures(held)


def _mapped(data: Data, change: Callable[[PixelRows], Tensor]) -> Data:
    def changed(inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(change(x) if isinstance(x, PixelRows) else x for x in inputs)

    return replace(
        data,
        inputs=changed(data.inputs),
        unlabelled=None if data.unlabelled is None else changed(data.unlabelled),
        held={name: _mapped(held, change) for name, held in data.held.items()},
    )
