"""Which of several processes is this one, where `torchrun` started them together? Read from its environment variables;
torch itself is not needed."""

from __future__ import annotations

import os
from dataclasses import dataclass


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
