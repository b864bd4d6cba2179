"""Recompute a submission: its own statements, the score of each of its runs, and the scores of their rows.

Results are cached in the user's cache, never on a board: in `boards/computed/<key>.json`, by the submission's digest,
the runs and their identities, and this version's code; the rows in `boards/rows/`. An interrupted verification
continues from there. A cached file has its own digest; if it does not match, the result is computed again.
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

from ...core.canonical import compute_identity, to_canonical_json
from ...core.errors import BadSubmission, FarshiftError, Unavailable
from ...core.files import write_atomically
from ...core.plugins import list_plugin_folders
from ..board_view import get_derived_folder
from ..submission.validate import validate_submission
from ..tables.row_scores import make_rows_path, store_rows
from .submit import make_run_item, score_entry

CACHE_VERSION = 1
"""Version of the cache format: raise it with every change of the content."""


@dataclass(frozen=True)
class RecomputeJob:
    """What to compute for a submission: its file; for each run the entry's name and identity; and whether row scores
    are needed too. fresh: ignore cached results."""

    file: Path
    digest: str
    runs: Mapping[int, tuple[str, str]]
    rows: bool = False
    fresh: bool = False


@dataclass(frozen=True)
class Recomputation:
    """The result. said: name, team, team key and note of the submission; runs: for each run the expected ledger entry
    (`item`), its `identity`, and `score`, the digest of its score, with the `scorer`, or `problem`; `rows`: the digest
    of the file of its row scores, if requested. unavailable, invalid: why nothing could be computed. before: whether an
    earlier verification computed it."""

    metadata: Mapping[str, str]
    runs: Mapping[int, Mapping[str, Any]]
    unavailable: str = ""
    invalid: str = ""
    before: bool = False


def recompute_scores(job: RecomputeJob) -> Recomputation:
    """Recompute a submission's scores, or read them from the cache."""
    cache_path = get_derived_folder() / "computed" / f"{_make_cache_key(job)}.json"
    if not job.fresh and (result := _read_cache(cache_path, job)) is not None:
        return result
    try:
        submission = validate_submission(job.file, set(job.runs))
    except Unavailable as error:
        return Recomputation({}, {}, unavailable=str(error))
    except BadSubmission as error:
        return Recomputation({}, {}, invalid=str(error))
    except FarshiftError as error:
        return Recomputation({}, {}, unavailable=str(error))
    metadata = {name: getattr(submission, name) for name in ("name", "team", "team_key", "choose", "note")}
    runs: dict[int, dict[str, Any]] = {}
    is_complete = True
    for run, entry in zip(sorted(job.runs), submission.entries, strict=True):
        name, identity = job.runs[run]
        runs[run] = {"item": make_run_item(name, run, entry), "identity": entry.entry_identity}
        try:
            score = score_entry(entry)
        except Unavailable as error:
            return Recomputation(metadata, {}, unavailable=str(error))
        except FarshiftError as error:
            runs[run]["problem"], is_complete = str(error), False
            continue
        runs[run] |= {"score": compute_identity(score.to_dict()), "scorer": score.scorer}
        if job.rows:
            rows = make_rows_path(get_derived_folder(), name, job.digest, identity)
            runs[run]["rows"] = sha256(store_rows(rows, entry, submission.model)).hexdigest()
    if is_complete:
        _write_cache(cache_path, {"said": metadata, "runs": {str(run): result for run, result in runs.items()}})
    return Recomputation(metadata, runs)


def _make_cache_key(job: RecomputeJob) -> str:
    parts = {"kept": CACHE_VERSION, "submission": job.digest, "rows": job.rows, "code": compute_code_digest()}
    return compute_identity(parts | {"runs": {str(run): list(names) for run, names in job.runs.items()}})[:32]


def _write_cache(path: Path, record: Mapping[str, Any]) -> None:
    content = to_canonical_json(record)
    try:
        write_atomically(path, sha256(content).hexdigest().encode() + b"\n" + content)
    except FarshiftError:
        return  # a full or read-only cache: computed again next time


def _read_cache(path: Path, job: RecomputeJob) -> Recomputation | None:
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if sha256(content).hexdigest().encode() != digest:
        return None
    record = json.loads(content)
    runs = {int(run): result for run, result in record["runs"].items()}
    for run, result in runs.items():
        rows = make_rows_path(get_derived_folder(), job.runs[run][0], job.digest, job.runs[run][1])
        if job.rows and not _has_digest(rows, result["rows"]):
            return None
    return Recomputation(record["said"], runs, before=True)


def _has_digest(file: Path, digest: str) -> bool:
    try:
        return sha256(file.read_bytes()).hexdigest() == digest
    except OSError:
        return False


def compute_code_digest() -> str:
    """A digest of all code that determines a score: this package's, that in `FARSHIFT_PATH`, and the versions of the
    numerical libraries."""
    return _compute_code_digest(tuple(list_plugin_folders()))


@cache
def _compute_code_digest(folders: tuple[Path, ...]) -> str:
    package, *own = folders
    code = [
        sha256(file.read_bytes()).hexdigest()
        for folder in (*(package / subpackage for subpackage in SUBPACKAGES), *own)
        for file in sorted(folder.rglob("*.py"))
    ]
    libraries = {name: version(name) for name in LIBRARIES}
    return compute_identity({"code": code, "libraries": libraries, "python": platform.python_version()})


SUBPACKAGES: Sequence[str] = ("core", "splits", "loaders", "benchmarks", "leaderboard")
LIBRARIES: Sequence[str] = ("numpy", "pyarrow")
