"""A submission computed again: what it says of itself, the score of each of its runs, and the scores of their rows.

What was computed is kept in the user's cache, never on a board: in `boards/computed/<key>.json`, by the submission's
digest, the runs and their identities, and this version's code; its rows in `boards/rows/`. A verification that is cut
off goes on from there. A file there carries a digest of its own: one that does not fit is computed again.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...core.canonical import canonical_json, identity_of
from ...core.errors import BadSubmission, FarshiftError, Unavailable
from ...core.files import write_atomically
from ...core.plugins import homes
from ..board_view import derived_here
from ..submission.validate import check
from ..tables.row_scores import keep_rows, rows_place
from .submit import item_of, scored

KEPT = 1
"""The version of what is kept: raised by any change of it."""


@dataclass(frozen=True)
class Due:
    """What is to be computed of a submission: its file; by run the entry's name and its identity; and whether the
    scores of rows are wanted too. fresh: whatever was computed before."""

    file: Path
    digest: str
    runs: Mapping[int, tuple[str, str]]
    rows: bool = False
    fresh: bool = False


@dataclass(frozen=True)
class Computed:
    """What came out. said: name, team, team key and note of the submission; runs: by run what the ledger should say of
    it (`item`), its `identity`, and `score`, the digest of its score, with the `scorer`, or `problem`; `rows`: the
    digest of the file of its rows, where they were wanted. unavailable, invalid: why nothing could be computed.
    before: whether an earlier verification computed it."""

    said: Mapping[str, str]
    runs: Mapping[int, Mapping[str, Any]]
    unavailable: str = ""
    invalid: str = ""
    before: bool = False


def recompute(due: Due) -> Computed:
    """Compute a submission's scores again, or take them from an earlier time."""
    place = derived_here() / "computed" / f"{_key(due)}.json"
    if not due.fresh and (found := _read(place, due)) is not None:
        return found
    try:
        submission = check(due.file, set(due.runs))
    except Unavailable as error:
        return Computed({}, {}, unavailable=str(error))
    except BadSubmission as error:
        return Computed({}, {}, invalid=str(error))
    except FarshiftError as error:
        return Computed({}, {}, unavailable=str(error))
    said = {name: getattr(submission, name) for name in ("name", "team", "team_key", "choose", "note")}
    runs: dict[int, dict[str, Any]] = {}
    whole = True
    for run, entry in zip(sorted(due.runs), submission.entries, strict=True):
        name, identity = due.runs[run]
        runs[run] = {"item": item_of(name, run, entry), "identity": entry.entry_identity}
        try:
            score = scored(entry)
        except Unavailable as error:
            return Computed(said, {}, unavailable=str(error))
        except FarshiftError as error:
            runs[run]["problem"], whole = str(error), False
            continue
        runs[run] |= {"score": identity_of(score.to_dict()), "scorer": score.scorer}
        if due.rows:
            rows = rows_place(derived_here(), name, due.digest, identity)
            runs[run]["rows"] = sha256(keep_rows(rows, entry, submission.model)).hexdigest()
    if whole:
        _write(place, {"said": said, "runs": {str(run): found for run, found in runs.items()}})
    return Computed(said, runs)


def _key(due: Due) -> str:
    parts = {"kept": KEPT, "submission": due.digest, "rows": due.rows, "code": code_digest()}
    return identity_of(parts | {"runs": {str(run): list(names) for run, names in due.runs.items()}})[:32]


def _write(place: Path, found: Mapping[str, Any]) -> None:
    content = canonical_json(found)
    try:
        write_atomically(place, sha256(content).hexdigest().encode() + b"\n" + content)
    except FarshiftError:
        return  # a full or read-only cache: it is computed again the next time


def _read(place: Path, due: Due) -> Computed | None:
    try:
        digest, _, content = place.read_bytes().partition(b"\n")
    except OSError:
        return None
    if sha256(content).hexdigest().encode() != digest:
        return None
    found = json.loads(content)
    runs = {int(run): one for run, one in found["runs"].items()}
    for run, one in runs.items():
        rows = rows_place(derived_here(), due.runs[run][0], due.digest, due.runs[run][1])
        if due.rows and not _is(rows, one["rows"]):
            return None
    return Computed(found["said"], runs, before=True)


def _is(file: Path, digest: str) -> bool:
    try:
        return sha256(file.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def code_digest() -> str:
    """A digest of all code that a score comes from: this package's, that in `FARSHIFT_PATH`, and the versions of the
    libraries that do the arithmetic."""
    return _code_digest(tuple(homes()))


@cache
def _code_digest(places: tuple[Path, ...]) -> str:
    package, *own = places
    code = [
        sha256(file.read_bytes()).hexdigest()
        for folder in (*(package / room for room in ROOMS), *own)
        for file in sorted(folder.rglob("*.py"))
    ]
    libraries = {name: version(name) for name in LIBRARIES}
    return identity_of({"code": code, "libraries": libraries, "python": platform.python_version()})


ROOMS: Sequence[str] = ("core", "splits", "loaders", "benchmarks", "leaderboard")
LIBRARIES: Sequence[str] = ("numpy", "pyarrow")
