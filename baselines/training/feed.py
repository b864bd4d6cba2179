"""Where the training images are stored: all on the device, or streamed to it step by step. The setting `feed`:

    resident  float32 on the device: the fastest if they fit
    streamed  uint8 in a mapped file or in memory; a thread gathers the rows of the next step during the current one,
              and they are scaled on the device
    auto      resident if all rows take at most a quarter of the device's free memory, else streamed

The rows of a step and their values are the same. Only images are streamed: a task's only input, of uint8.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from ...core.errors import ModelError
from ...core.progress import log_message
from ...loaders.cache.entries import format_size
from ..encoding.stored_rows import PixelRows
from .sampler import Data

SHARE = 0.25
"""The share of free memory that all rows may take."""


def move_to_device(data: Data, feed: str, device: str) -> Data:
    """Move `data` to a device, its images as `feed` says. `ModelError` for streaming inputs that are not images."""
    every = [x for some in (data, *data.held_out.values()) for x in (*some.inputs, *(some.unlabelled or ()))]
    lazy = [x for x in every if isinstance(x, PixelRows)]
    if feed == "streamed" and not lazy:
        raise ModelError(
            "setting feed = 'streamed': only images are streamed, and this task has no single input of uint8 pixels: "
            "leave feed at auto"
        )
    size = sum(4 * len(pixels) * pixels.shape[1] for pixels in lazy)
    if feed == "auto" and size > (most := int(SHARE * get_free_memory(device))):
        log_message(
            f"the images take {format_size(size)} as float32, more than {format_size(most)}: they stay uint8 and "
            "are streamed to the device (feed = 'streamed')"
        )
        feed = "streamed"
    if feed == "streamed":
        return data.to(device)
    return _map_inputs(data, lambda x: x.to_tensor(device) if isinstance(x, PixelRows) else x).to(device)


def get_free_memory(device: str) -> int:
    """The free bytes of a device; for a CPU, those available without swapping."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 8 * 2**30  # not Linux: a typical size


def _map_inputs(data: Data, change: Callable[[Tensor], Tensor]) -> Data:
    return replace(
        data,
        inputs=tuple(map(change, data.inputs)),
        unlabelled=None if data.unlabelled is None else tuple(map(change, data.unlabelled)),
        held_out={name: _map_inputs(part_data, change) for name, part_data in data.held_out.items()},
    )
