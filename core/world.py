"""Which of several processes this one is, where `torchrun` started them together (by its environment variables), and
which devices there are."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from .errors import FarshiftError, get_first_line


@dataclass(frozen=True)
class World:
    """`rank` of `size` processes. `launch` is the same in all that were started together."""

    rank: int = 0
    size: int = 1
    launch: str = ""

    def share(self, batches: int) -> range:
        """The batches that are this rank's: a contiguous piece, so that pieces of any world size fit together."""
        return range(batches * self.rank // self.size, batches * (self.rank + 1) // self.size)


SINGLE_PROCESS = World()


def get_world() -> World:
    """The world of this process: `torchrun`'s, or this process alone."""
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        launch = [os.environ[name] for name in ("MASTER_ADDR", "MASTER_PORT")]
    except (KeyError, ValueError):
        return SINGLE_PROCESS
    launch += [os.environ.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")]
    return World(rank, size, ":".join(launch)) if 0 <= rank < size and size > 1 else SINGLE_PROCESS


def check_device(device: str) -> None:
    """Raises `FarshiftError` for an unknown device, or one that torch does not have; "cpu" needs no torch."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?|mps|xpu(:\d+)?", device):
        raise FarshiftError(f"device {device!r}: use cpu, cuda, cuda:1, mps ..")
    if device == "cpu":
        return
    try:
        import torch

        torch.empty(1, device=device)
    except ImportError as error:
        raise FarshiftError(f"device {device!r} needs torch: pip install 'farshift[train]'") from error
    except (RuntimeError, AssertionError) as error:
        raise FarshiftError(f"device {device!r} cannot be used here: {get_first_line(error)}") from error
