"""Pictures that cannot be decoded: among training rows they are named by row id, before anything is trained; a row that
is asked about is left without an answer, which counts as wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.answers import Answers
from ...benchmarks.model import Columns
from ...core.errors import BadData
from ...core.progress import say
from ...loaders.batching.encoded import BadPicture
from ...loaders.batching.pictures import readable
from .encoding import ClassEncoding
from .pixel_rows import PixelRows, largest


@contextmanager
def named(rows: object) -> Iterator[None]:
    """While `rows` are encoded: a picture that cannot be decoded is an error that names its row, where `rows` have
    ids."""
    try:
        yield
    except BadPicture as error:
        ids = getattr(rows, "row_ids", None)
        if ids is None:
            raise
        raise BadData(f"row {int(ids[error.place]):016x}: its picture cannot be decoded: {error.why}") from error


def look(inputs: Sequence[Any]) -> None:
    """Decode what is decoded whenever it is read, so that training does not meet a broken picture in its middle."""
    for x in inputs:
        if isinstance(x, PixelRows) and x.on_the_fly:
            largest(x.pixels)


def answered(coding: ClassEncoding, batch: Columns, ask: Callable[[Columns], list[Answers]]) -> list[Answers]:
    """What `ask` gives for a batch, one for each replica; rows whose picture cannot be decoded are `FAILED`."""
    try:
        return ask(batch)
    except BadPicture as error:
        here: NDArray[np.bool_] = np.ones(len(next(iter(batch.values()))), bool)
        for name in coding.pictures:
            here &= readable(batch[name], coding.by)
        say(f"{int((~here).sum())} pictures of a batch cannot be decoded, and count as wrong: {error.why}")
    return [one.spread(here) for one in ask({name: column[here] for name, column in batch.items()})]
