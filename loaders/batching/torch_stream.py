"""A part as a PyTorch stream of ready batches that finds its ranks and workers, and resumes at any number of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import IterableDataset, get_worker_info

from ...core.errors import FarshiftError
from .batched import BatchedPart
from .columns import Text, check_text, to_microseconds
from .encoded import BadFile
from .input_format import AudioSpec, ImageSpec, InputFormat, make_row_error
from .order import GlobalBatches

Batch = dict[str, Any]

_READERS = 4097  # up to 4096 workers, and last the process that owns the stream


class TorchStream(IterableDataset[Batch]):
    """One epoch a pass, in batches: dictionaries of tensors (this rank's share of the global batch, first axis the
    row); text as lists of `str`, or with `text="bytes"` as two tensors, `<name>` and `<name>.offsets`. Pictures and
    sounds come as `images` and `audio` ask for them (`input_format.py`); a file that cannot be decoded is a
    `BadData` that names its row.

    For `DataLoader(stream, batch_size=None)`: its workers take the global batches in turn, so the loader gives them in
    the order of the epoch. Rank and world are those given, else of `torch.distributed` where it is initialised, else
    `RANK` and `WORLD_SIZE`. `batch_size` is the global batch, over all ranks. All ranks have the same number of
    batches; in a shorter last one (none with `drop_last`) they may differ by a row, and some may have no row.

    A state is a position in global batches and tells nothing of ranks: saved at world 4, it resumes at world 2 or 1,
    no row lost or repeated. A loaded position holds for one pass. `state_dict` knows the position where this process
    reads, and in torchdata's `StatefulDataLoader` (whose own state resumes at the same number of workers); the
    workers of a plain `DataLoader` read ahead unseen, so there a training loop counts its steps and asks `state_at`.
    """

    def __init__(
        self,
        part: BatchedPart,
        batch_size: int,
        seed: int | None = 0,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        text: Text = "str",
        rank: int | None = None,
        world: int | None = None,
        images: ImageSpec = "bytes",
        audio: AudioSpec = "bytes",
    ) -> None:
        super().__init__()
        if (rank is None) != (world is None):
            raise FarshiftError("rank and world go together: give both, or neither to have them found")
        check_text(text)
        self.forms = InputFormat(images, audio).checked()
        if text == "bytes" and (images, audio) != ("bytes", "bytes"):
            raise FarshiftError('text="bytes" gives files as bytes too: leave it out, or leave out images and audio')
        self.part, self.batch_size, self.seed, self.drop_last, self.text = part, batch_size, seed, drop_last, text
        self.columns = part.resolve_columns(columns)
        self._place_given = None if rank is None or world is None else (rank, world)
        self._place_at_start: tuple[int, int] | None = None
        # Workers may outlive a pass, each with a copy of this object: what must reach them lies in shared memory.
        self._next_pass = torch.tensor([epoch, 0]).share_memory_()  # type: ignore[no-untyped-call]
        self._begun = torch.zeros(_READERS, dtype=torch.bool).share_memory_()  # type: ignore[no-untyped-call]
        self._worker_resumes: tuple[int, int] | None = None
        self._at = (epoch, 0)
        self._cut()

    def __iter__(self) -> Iterator[Batch]:
        """A pass over the epoch set, or over what is left of it where a position was loaded."""
        cut, (worker, workers) = self._cut(), _find_reader()
        # Taken now and not at the first batch: a loader may ask for an iterator and throw it away.
        self._at = self._begin()
        return self._pass(cut, self._at, worker, workers)

    def __len__(self) -> int:
        """The number of batches in a whole epoch, the same on every rank."""
        return self._cut().count

    def set_epoch(self, epoch: int) -> None:
        """The epoch of the next pass, also for workers that live on. A position loaded for this epoch stays."""
        resumes = epoch == int(self._next_pass[0]) and not self._begun.any()
        self._go_to(epoch, int(self._next_pass[1]) if resumes else 0)

    def state_dict(self) -> dict[str, Any]:
        """The position of this reader, as plain values.

        Raises `FarshiftError` where workers of a plain `DataLoader` have read the stream since the epoch was set.
        """
        if get_worker_info() is None and self._begun[:-1].any():
            raise FarshiftError(
                "a DataLoader's workers read this stream, so its position is not known here: count the batches taken "
                "and use state_at(count), or use torchdata's StatefulDataLoader and its state_dict"
            )
        return self._state(*self._at, _find_reader())

    def state_at(self, batch: int) -> dict[str, Any]:
        """The state of the current epoch before global batch `batch`: after so many batches were taken."""
        if not 0 <= batch <= len(self):
            raise FarshiftError(f"an epoch of this stream has {len(self)} batches: there is no position {batch}")
        return self._state(int(self._next_pass[0]), batch, (0, 1))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state in the next pass. Raises `FarshiftError` for a state of other rows, order or batches."""
        own = self._state(*self._at, (0, 1))
        if missing := sorted(own.keys() - state.keys()):
            raise FarshiftError(f"invalid state of a stream: it lacks {', '.join(missing)}")
        for key in ("part", "rows", "seed", "batch_size"):
            if state[key] != own[key]:
                raise FarshiftError(
                    f"this state is of a stream with {key} {state[key]}, and this one has {own[key]}: its position "
                    "means other rows"
                )
        epoch, start, reader = int(state["epoch"]), int(state["start"]), tuple(state["reader"])
        if reader != (0, 1) and reader != _find_reader():
            raise FarshiftError(
                f"this is the state of DataLoader worker {reader[0]} of {reader[1]} alone: load the loader's state, "
                "with the same num_workers"
            )
        if get_worker_info() is not None:
            self._worker_resumes = epoch, start
        elif start >= len(self) and self._at[0] > epoch and self._at[1] == 0:
            # Nothing is left of that epoch and a later one is set: StatefulDataLoader loads its state only then.
            return
        else:
            self._go_to(epoch, start)

    def _go_to(self, epoch: int, start: int) -> None:
        self._at = epoch, start
        self._next_pass.copy_(torch.tensor(self._at))
        self._begun.zero_()

    def _begin(self) -> tuple[int, int]:
        """The epoch and first global batch of a pass of this reader; a loaded position is used up."""
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
            text=self.text,
        )
        for batch in batches:
            start += workers
            self._at = epoch, start
            yield {name: _to_tensor(values) for name, values in self._formed(batch).items()}

    def _formed(self, batch: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        if not all(map(len, batch.values())):
            return self.forms.make_empty_columns(batch, self.part.schema)
        try:
            return self.forms.given(batch)
        except BadFile as error:
            if "row_id" in batch:
                raise make_row_error(error, batch["row_id"]) from error
            raise

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
        """What decides the order but the seed: the manifest and the rows chosen of it."""
        return sha256(self.part.identity.encode() + self.part.row_ids.tobytes()).hexdigest()[:16]

    def __getstate__(self) -> dict[str, Any]:
        # A spawned worker has no process group to ask.
        return self.__dict__ | {"_place_at_start": self._find_rank_and_world()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._next_pass.share_memory_()
        self._begun.share_memory_()


def _find_reader() -> tuple[int, int]:
    """Which of how many readers of this rank the process is: a DataLoader's worker, or the only one."""
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def _to_tensor(values: NDArray[Any]) -> torch.Tensor | list[Any]:
    return values.tolist() if values.dtype == np.dtype(object) else torch.from_numpy(to_microseconds(values))
