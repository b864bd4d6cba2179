"""The part of a verification that checks a board's card, the records' times, and the row scores in the board's
folder."""

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
"""Permitted clock difference between machines that write to one board, and between its opening in card and ledger."""

AHEAD = timedelta(days=1)
"""How far a board's clock may be ahead of this machine's."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


_UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError),
    *(RuntimeError, KeyError),  # zipfile's: a password, an unknown compression, a missing member
    *(ValueError, TypeError, tokenize.TokenError, OverflowError, MemoryError),  # NumPy's: bad header or shape
)
"""The exceptions of `numpy.load` for a damaged archive."""


def verify_card(card: Mapping[str, Any], records: Sequence[Record]) -> list[str]:
    """Differences between board.toml and the ledger's first record."""
    if not records:
        return []
    problems = []
    recorded_name = records[0].body.get("name")
    if card.get("name") != recorded_name:
        problems.append(f"board.toml has the name {card.get('name')!r}, but the ledger has {recorded_name!r}")
    opened, first = _parse_time(card.get("opened")), _parse_time(records[0].time)
    if opened is None or (first is not None and abs(opened - first) > SLACK):
        stated_time = str(card.get("opened"))[:40]
        problems.append(f"board.toml has the opening time {stated_time!r}, but the ledger has {records[0].time}")
    return problems


def verify_times(records: Sequence[Record]) -> list[str]:
    """Invalid times of records: not a time, before the previous record's, or in the future."""
    problems = []
    latest: datetime | None = None
    soon = datetime.fromisoformat(get_utc_now()) + AHEAD
    for record in records:
        time = _parse_time(record.time)
        if time is None:
            problems.append(f"record {record.seq} has the time {record.time[:40]!r}, which is invalid")
            continue
        if time > soon:
            problems.append(f"record {record.seq} has the time {record.time}, which is in the future")
        elif latest is not None and time < latest - SLACK:
            problems.append(f"record {record.seq} has the time {record.time}, before that of an earlier record")
        latest = time if latest is None else max(time, latest)
    return problems


def _parse_time(time: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(time) if isinstance(time, str) and _TIME.fullmatch(time) else None
    except ValueError:
        return None


def verify_rows(derived: Path, entries: Sequence[Entry]) -> list[str]:
    """Stored row scores that differ from those recomputed from the submissions: rank sets are computed from them."""
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
            problems.append(f"{entry}: derived/rows/{stored.name} differs from its submission's rows: delete it")
    return problems


def _is_same_archive(stored: bytes, recomputed: bytes) -> bool:
    if stored == recomputed:
        return True
    try:  # another version of zlib may compress the same content differently
        with (
            np.load(io.BytesIO(stored), allow_pickle=False) as left,
            np.load(io.BytesIO(recomputed), allow_pickle=False) as right,
        ):
            return set(left) == set(right) and all(_is_equal_array(left[name], right[name]) for name in left)
    except _UNREADABLE:
        return False


def _is_equal_array(left: Any, right: Any) -> bool:
    return bool(left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes())
