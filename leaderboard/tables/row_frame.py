"""The rows that a table's entries were scored on: their ids, groups and severities, in the order of `EntryRows`.

They are the same for all entries of a table, whose identity covers split, views and scorer. Like the rows' scores they
are cached, in `derived/frames/<identity>.npz`, and may be deleted at any time.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import load_benchmarks
from ...core.canonical import compute_identity
from ...core.durable import ADVICE
from ...core.errors import Unavailable
from ...core.files import append_digest, strip_digest, write_atomically
from ..board_view import BoardView
from .row_scores import VIEWS
from .standings import Table

CACHE_VERSION = 1
"""Version of the cache format: raise it with every change of the content."""


@dataclass(frozen=True, eq=False)
class ViewFrame:
    """A view's rows: ids (n,), severities (n,) and groups (n,), as indices into `names`; None if the benchmark has no
    severities or groups."""

    row_ids: NDArray[np.uint64]
    severity: NDArray[np.float64] | None = None
    group: NDArray[np.int64] | None = None
    names: Sequence[str] = ()


Frame = dict[str, ViewFrame]
"""The rows of the ID and the OOD view."""


def read_row_frame(board: BoardView, table: Table) -> Frame | None:
    """The rows of a table; None if they are unavailable here: an older identity, or data that cannot be read."""
    if not table.current:
        return None
    return _read_cached_frame(
        board.derived / "frames" / f"{compute_identity({'kept': CACHE_VERSION, 'of': table.identity})[:32]}.npz",
        table.benchmark,
    )


@lru_cache(maxsize=8)
def _read_cached_frame(path: Path, benchmark: str) -> Frame | None:
    try:
        return deserialise_frame(path.read_bytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        pass
    try:
        frame = {view: _make_view_frame(benchmark, view) for view in VIEWS}
    except Unavailable:
        return None
    write_atomically(path, serialise_frame(frame), ADVICE)
    return frame


def _make_view_frame(benchmark: str, view: str) -> ViewFrame:
    part, _ = load_benchmarks()[benchmark].view(view)
    severity, group = part.row_metadata.get("severity"), part.row_metadata.get("group")
    names, numbers = (None, None) if group is None else np.unique(np.asarray(group), return_inverse=True)
    return ViewFrame(
        np.asarray(part.row_ids, np.uint64),
        None if severity is None else np.asarray(severity, np.float64),
        None if numbers is None else numbers.reshape(-1).astype(np.int64),
        () if names is None else tuple(map(str, names.tolist())),
    )


def serialise_frame(frame: Frame) -> bytes:
    """Serialise the rows to an .npz file followed by a digest."""
    arrays: dict[str, NDArray[Any]] = {}
    for view, view_frame in frame.items():
        arrays[f"{view}.row_ids"] = view_frame.row_ids
        if view_frame.severity is not None:
            arrays[f"{view}.severity"] = view_frame.severity
        if view_frame.group is not None:
            arrays[f"{view}.group"] = view_frame.group.astype(np.min_scalar_type(len(view_frame.names)))
            arrays[f"{view}.names"] = np.frombuffer(
                "\0".join(view_frame.names).encode("utf-8", "surrogatepass"), np.uint8
            )
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return append_digest(content.getvalue())


def deserialise_frame(content: bytes) -> Frame:
    """Inverse of `serialise_frame`. Raises `ValueError`, `KeyError`, `OSError` or `BadZipFile` if the content is
    damaged."""
    with np.load(io.BytesIO(strip_digest(content)), allow_pickle=False) as arrays:
        return {view: _deserialise_view(arrays, view) for view in VIEWS}


def _deserialise_view(arrays: Any, view: str) -> ViewFrame:
    severity = arrays.get(f"{view}.severity")
    if f"{view}.group" not in arrays:
        return ViewFrame(arrays[f"{view}.row_ids"], severity)
    names = arrays[f"{view}.names"].tobytes().decode("utf-8", "surrogatepass").split("\0")
    return ViewFrame(arrays[f"{view}.row_ids"], severity, arrays[f"{view}.group"].astype(np.int64), tuple(names))
