"""A part in PyTorch: a stream of batches that detects ranks and workers, and resumes with any number of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from ...core.errors import FarshiftError
from .batched import BatchedPart
from .columns import to_microseconds
from .input_format import AudioSpec, ImageSpec, InputFormat
from .order import GlobalBatches

Batch = dict[str, Any]

_READERS = 4097  # up to 4096 workers, and last the process that owns the stream


class TorchStream(IterableDataset[Batch]):
    """Each pass yields one epoch in batches: dictionaries of tensors (this rank's share of the global batch, first axis
    the row). Text is a list of `str`. `images` and `audio` set the format of images and audio (`input_format.py`); a
    file that cannot be decoded raises `BadData` with its row id.

    For `DataLoader(stream, batch_size=None)`: its workers read the global batches in turn, so the loader yields them in
    the order of the epoch. Rank and world are the arguments, else those of `torch.distributed` if it is initialised,
    else `RANK` and `WORLD_SIZE`. `batch_size` is the global batch, over all ranks. All ranks have the same number of
    batches; in a shorter last one (none with `drop_last`) their sizes may differ by a row, and some may be empty.

    A state is a position in global batches, independent of ranks: saved at world 4, it resumes at world 2 or 1 without
    lost or repeated rows. A loaded position holds for one pass. `state_dict` works if this process reads the stream,
    and in torchdata's `StatefulDataLoader` (whose own state resumes with the same number of workers). The workers of a
    plain `DataLoader` read ahead, so there a training loop has to count its steps and call `state_at`.
    """

    def __init__(
        self,
        part: BatchedPart,
        batch_size: int,
        seed: int | None = 0,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        rank: int | None = None,
        world: int | None = None,
        images: ImageSpec = "bytes",
        audio: AudioSpec = "bytes",
    ) -> None:
        super().__init__()
        if (rank is None) != (world is None):
            raise FarshiftError("rank and world go together: give both, or neither to detect them")
        self.forms = InputFormat(images, audio).checked()
        self.part, self.batch_size, self.seed, self.drop_last = part, batch_size, seed, drop_last
        self.columns = part.resolve_columns(columns)
        self._place_given = None if rank is None or world is None else (rank, world)
        self._place_at_start: tuple[int, int] | None = None
        # Workers may outlive a pass, each with a copy of this object, so state for them is in shared memory.
        self._next_pass = torch.tensor([epoch, 0]).share_memory_()  # type: ignore[no-untyped-call]
        self._begun = torch.zeros(_READERS, dtype=torch.bool).share_memory_()  # type: ignore[no-untyped-call]
        self._worker_resumes: tuple[int, int] | None = None
        self._at = (epoch, 0)
        self._cut()

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over the current epoch, or over the rest of it if a position was loaded."""
        cut, (worker, workers) = self._cut(), _find_reader()
        # Read now and not at the first batch, since a loader may create an iterator and discard it.
        self._at = self._begin()
        return self._pass(cut, self._at, worker, workers)

    def __len__(self) -> int:
        """The number of batches in a whole epoch, the same on every rank."""
        return self._cut().count

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next pass, also for persistent workers. A position loaded for this epoch is kept."""
        resumes = epoch == int(self._next_pass[0]) and not self._begun.any()
        self._go_to(epoch, int(self._next_pass[1]) if resumes else 0)

    def state_dict(self) -> dict[str, Any]:
        """Return the position of this reader, as plain values.

        Raises `FarshiftError` if workers of a plain `DataLoader` have read the stream since the epoch was set.
        """
        if get_worker_info() is None and self._begun[:-1].any():
            raise FarshiftError(
                "a DataLoader's workers read this stream, so its position is unknown in this process: count the "
                "batches and use state_at(count), or use torchdata's StatefulDataLoader and its state_dict"
            )
        return self._state(*self._at, _find_reader())

    def state_at(self, batch: int) -> dict[str, Any]:
        """Return the state of the current epoch before global batch `batch`, that is after `batch` batches."""
        if not 0 <= batch <= len(self):
            raise FarshiftError(f"position {batch} is outside the epoch, which has {len(self)} batches")
        return self._state(int(self._next_pass[0]), batch, (0, 1))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a state in the next pass. Raises `FarshiftError` for a state of other rows, order or batches."""
        own = self._state(*self._at, (0, 1))
        if missing := sorted(own.keys() - state.keys()):
            raise FarshiftError(f"invalid state of a stream: missing {', '.join(missing)}")
        for key in ("part", "rows", "seed", "batch_size"):
            if state[key] != own[key]:
                raise FarshiftError(
                    f"the state is of a stream with {key} {state[key]}, but this stream has {own[key]}: its position "
                    "would refer to other rows"
                )
        epoch, start, reader = int(state["epoch"]), int(state["start"]), tuple(state["reader"])
        if reader != (0, 1) and reader != _find_reader():
            raise FarshiftError(
                f"this is the state of only DataLoader worker {reader[0]} of {reader[1]}: load the loader's state, "
                "with the same num_workers"
            )
        if get_worker_info() is not None:
            self._worker_resumes = epoch, start
        elif start >= len(self) and self._at[0] > epoch and self._at[1] == 0:
            # The epoch of the state is finished and a later one is set: StatefulDataLoader loads its state only then.
            return
        else:
            self._go_to(epoch, start)

    def _go_to(self, epoch: int, start: int) -> None:
        self._at = epoch, start
        self._next_pass.copy_(torch.tensor(self._at))
        self._begun.zero_()

    def _begin(self) -> tuple[int, int]:
        """The epoch and first global batch of a pass of this reader. Consumes a loaded position."""
        info = get_worker_info()
        slot = -1 if info is None else info.id
        epoch, start = self._next_pass.tolist()
        if self._begun[slot]:
            start = 0
        if self._worker_resumes is not None:
            epoch, start = self._worker_resumes
            self._worker_resumes = None
        self._begun[slot] = True
        return epoch, start

    def _pass(self, cut: GlobalBatches, at: tuple[int, int], worker: int, workers: int) -> Iterator[Batch]:
        epoch, start = at
        batches = self.part.batches(
            self.batch_size,
            self.seed,
            epoch,
            self.drop_last,
            self.columns,
            rank=cut.rank,
            world=cut.world,
            worker=worker,
            workers=workers,
            start=start,
        )
        for batch in batches:
            start += workers
            self._at = epoch, start
            if all(map(len, batch.values())):
                columns = self.forms.given(batch, batch.get("row_id"))
            else:
                columns = self.forms.make_empty_columns(batch, self.part.schema)
            yield {name: _to_tensor(values) for name, values in columns.items()}

    def _cut(self) -> GlobalBatches:
        rank, world = self._find_rank_and_world()
        return GlobalBatches(len(self.part), self.batch_size, rank, world, self.drop_last)

    def _find_rank_and_world(self) -> tuple[int, int]:
        """Rank and world."""
        if self._place_given is not None:
            return self._place_given
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            return torch.distributed.get_rank(), torch.distributed.get_world_size()
        if get_worker_info() is not None and self._place_at_start is not None:
            return self._place_at_start
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))

    def _state(self, epoch: int, start: int, reader: tuple[int, int]) -> dict[str, Any]:
        return {
            "part": f"{self.part.split} {self.part.name}",
            "rows": self._rows,
            "seed": self.seed,
            "batch_size": self.batch_size,
            "epoch": epoch,
            "start": start,
            "reader": list(reader),
        }

    @cached_property
    def _rows(self) -> str:
        """Identifies what determines the order besides the seed: the manifest and the selected rows."""
        return sha256(self.part.identity.encode() + self.part.row_ids.tobytes()).hexdigest()[:16]

    def __getstate__(self) -> dict[str, Any]:
        # A spawned worker has no process group.
        return self.__dict__ | {"_place_at_start": self._find_rank_and_world()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._next_pass.share_memory_()
        self._begun.share_memory_()


def _find_reader() -> tuple[int, int]:
    """The index and number of readers of this rank: a DataLoader's worker, or the only reader."""
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def _to_tensor(values: NDArray[Any]) -> Tensor | list[Any]:
    return values.tolist() if values.dtype == np.dtype(object) else torch.from_numpy(to_microseconds(values))
