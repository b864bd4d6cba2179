"""Of a verification the part about what a board states beside its ledger: its card, the records' times, and the row
scores that it keeps."""

from __future__ import annotations

import io
import re
import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from ...core.clock import get_utc_now
from ..board_view import get_derived_folder
from ..entries import Entry
from ..ledger import Record
from ..tables.row_scores import make_rows_path

SLACK = timedelta(minutes=1)
"""How far the clocks of machines that write to one board may be apart, and a board's opening from its card's."""

AHEAD = timedelta(days=1)
"""How far a board's clock may be ahead of this machine's."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError),
    *(RuntimeError, KeyError),  # zipfile's: a password, a compression that it does not know, a member that is not there
    *(ValueError, TypeError, tokenize.TokenError, OverflowError, MemoryError),  # NumPy's: a header, a shape, no archive
)
"""What `numpy.load` raises for an archive whose bytes were changed."""


def verify_card(card: Mapping[str, Any], records: Sequence[Record]) -> list[str]:
    """What board.toml says otherwise than the ledger's first record."""
    if not records:
        return []
    problems = []
    recorded_name = records[0].body.get("name")
    if card.get("name") != recorded_name:
        problems.append(f"board.toml has the name {card.get('name')!r}, and the board was opened as {recorded_name!r}")
    opened, first = _parse_time(card.get("opened")), _parse_time(records[0].time)
    if opened is None or (first is not None and abs(opened - first) > SLACK):
        stated_time = str(card.get("opened"))[:40]
        problems.append(f"board.toml says that it was opened at {stated_time!r}, and the ledger at {records[0].time}")
    return problems


def verify_times(records: Sequence[Record]) -> list[str]:
    """Records whose times no board writes: not a time, before the record before them, or yet to come."""
    problems = []
    latest: datetime | None = None
    soon = datetime.fromisoformat(get_utc_now()) + AHEAD
    for record in records:
        time = _parse_time(record.time)
        if time is None:
            problems.append(f"record {record.seq} has the time {record.time[:40]!r}, which is none")
            continue
        if time > soon:
            problems.append(f"record {record.seq} is of {record.time}, which is yet to come")
        elif latest is not None and time < latest - SLACK:
            problems.append(f"record {record.seq} is of {record.time}, before the records that it follows")
        latest = time if latest is None else max(time, latest)
    return problems


def _parse_time(time: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(time) if isinstance(time, str) and _TIME.fullmatch(time) else None
    except ValueError:
        return None


def verify_rows(derived: Path, entries: Sequence[Entry]) -> list[str]:
    """The rows that a board keeps and that are not those computed from its submissions: rank sets come from them."""
    problems = []
    for entry in entries:
        if not entry.scores:
            continue
        where = (entry.entry, entry.submission, entry.scores[-1].entry_identity)
        stored, recomputed = make_rows_path(derived, *where), make_rows_path(get_derived_folder(), *where)
        if (
            stored.is_file()
            and recomputed.is_file()
            and not _is_same_archive(stored.read_bytes(), recomputed.read_bytes())
        ):
            problems.append(f"{entry}: derived/rows/{stored.name} is not what its submission gives: delete it")
    return problems


def _is_same_archive(stored: bytes, recomputed: bytes) -> bool:
    if stored == recomputed:
        return True
    try:  # another version of zlib packs the same otherwise
        with (
            np.load(io.BytesIO(stored), allow_pickle=False) as left,
            np.load(io.BytesIO(recomputed), allow_pickle=False) as right,
        ):
            return set(left) == set(right) and all(_is_equal_array(left[name], right[name]) for name in left)
    except _UNREADABLE:
        return False


def _is_equal_array(left: Any, right: Any) -> bool:
    return bool(left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes())
