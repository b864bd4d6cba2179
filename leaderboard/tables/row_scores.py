"""The stored rows of a board's entries (`EntryRows`), so that its tables are computed in seconds.

Rank sets, ties and paired differences need the scores of rows, not only their means. They are a pure function of the
stored submission; the cache `derived/rows/<entry>-<key>.npz` may be deleted at any time. Cached rows are checked
against a digest at the end of the file, the file's own name inside it (two entries may have the same scores and other
cards) and the score in the ledger; a file that does not match is computed again.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import load_benchmarks
from ...benchmarks.statistics.clusters import Clustering
from ...benchmarks.statistics.interval import estimate_mean
from ...benchmarks.statistics.sample import Replicates, RowScores, Sample
from ...core.canonical import compute_identity, to_canonical_json
from ...core.documents import parse_json
from ...core.engines import Needs, map_jobs
from ...core.errors import Unavailable, get_first_line
from ...core.files import BOARD_ADVICE, append_digest, strip_digest, write_atomically
from ...core.progress import report_progress
from ..board_view import BoardView
from ..entries import ScoredEntry
from ..submission.validate import ValidRun, validate_submission
from ..validation.card import ModelCard
from .entry_rows import VIEWS, EntryRows, compute_entry_rows
from .table import explain_outdated

CACHE_VERSION = 13
"""Version of the cache format: raise it with every change of the content."""

MANY = 12
"""Minimum number of submissions that are read by two processes."""


def read_entry_rows(board: BoardView, standings: Sequence[ScoredEntry]) -> tuple[dict[str, EntryRows], dict[str, str]]:
    """Return the rows of entries by name, and the reason for each entry that has none here: it is of an older identity,
    of a benchmark that is unknown here, or its data are unavailable. Rows that are not cached are computed."""
    known = load_benchmarks()
    reasons = {item.entry: explain_outdated(known, item.score, item.score.entry_identity)[0] for item in standings}
    without = {entry: reason for entry, reason in reasons.items() if reason}
    rows: dict[str, EntryRows] = {}
    lacking: dict[str, list[ScoredEntry]] = {}
    for standing in standings:
        if standing.entry not in without:
            entry_rows = _read_cached_rows(board, standing)
            if entry_rows is None:
                lacking.setdefault(standing.submission, []).append(standing)
            else:
                rows[standing.entry] = entry_rows
    failed = _make_missing_rows(board, lacking)
    for standing in (standing for group in lacking.values() for standing in group):
        entry_rows = _read_cached_rows(board, standing)
        if entry_rows is None:
            without[standing.entry] = failed.get(standing.submission, _OTHER_SCORE)
        else:
            rows[standing.entry] = entry_rows
    return rows, without


def _get_rows_path(board: BoardView, standing: ScoredEntry) -> Path:
    return make_rows_path(board.derived, standing.entry, standing.submission, standing.score.entry_identity)


def make_rows_path(derived: Path, entry: str, submission: str, identity: str) -> Path:
    """The path of an entry's cached rows, by its name, its submission and the identity of its score."""
    key = compute_identity({"kept": CACHE_VERSION, "submission": submission, "identity": identity})
    return derived / "rows" / f"{entry}-{key[:12]}.npz"


_OTHER_SCORE = "its recomputed rows do not match the score in the ledger (run `farshift board verify`)"


def _make_missing_rows(board: BoardView, lacking: Mapping[str, list[ScoredEntry]]) -> dict[str, str]:
    """Compute and cache the rows of the entries of some submissions. Returns reasons for failures by submission."""
    jobs = [
        (board.submission_file(submission), {standing.run: _get_rows_path(board, standing) for standing in group})
        for submission, group in lacking.items()
    ]
    failed: dict[str, str] = {}
    done = (
        map(_store_run_rows, jobs)
        if len(jobs) < MANY
        else map_jobs("processes", _store_run_rows, jobs, Needs(workers=2))
    )
    for number, (submission, reason) in enumerate(zip(lacking, done, strict=True)):
        report_progress("computing rows", number + 1, len(jobs))
        if reason:
            failed[submission] = f"its data are unavailable here: {reason}"
    return failed


def _store_run_rows(job: tuple[Path, Mapping[int, Path]]) -> str:
    """Compute and cache the rows of some runs of a stored submission. Returns the reason for a failure, or ""."""
    submission, places = job
    try:
        read = validate_submission(submission, set(places))
    except Unavailable as error:
        return get_first_line(error)
    for number, entry in zip(sorted(places), read.entries, strict=True):
        store_rows(places[number], entry, read.card.model)
    return ""


def store_rows(path: Path, entry: ValidRun, model: ModelCard) -> None:
    """Compute and cache the rows of a run, with the model card of its team."""
    write_atomically(path, serialise_rows(compute_entry_rows(entry, model), path.name), BOARD_ADVICE)


def serialise_rows(rows: EntryRows, file_name: str) -> bytes:
    """Serialise the rows to the .npz file of this name, followed by a digest."""
    arrays: dict[str, NDArray[Any]] = {}
    for view, sample in ((view, getattr(rows, view)) for view in VIEWS):
        arrays[f"{view}.bounds"] = np.array(sample.bounds)
        if isinstance(sample, RowScores):
            arrays[f"{view}.scores"] = _shrink_scores(sample.scores)
            if sample.clusters is not None:
                arrays[f"{view}.clusters"] = sample.clusters
        elif isinstance(sample, Replicates):
            arrays[f"{view}.per_seed"] = np.array(sample.per_seed)
            arrays[f"{view}.without"], arrays[f"{view}.sizes"] = sample.without, sample.sizes
            arrays[f"{view}.bias"] = np.array(sample.bias)
            if sample.ends is not None:
                arrays[f"{view}.ends"] = sample.ends
    header = {
        "file": file_name,
        "floor": rows.floor,
        "odd": list(rows.odd),
        "worst": rows.worst,
        "declared": list(rows.declared),
        "card": dict(rows.card),
        "clustering": {view: getattr(rows, view).clustering.to_dict() for view in VIEWS},
    }
    arrays["said"] = np.frombuffer(to_canonical_json(header), np.uint8)
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return append_digest(content.getvalue())


def _shrink_scores(scores: NDArray[np.float64]) -> NDArray[Any]:
    """Convert scores that are 0 or 1 to bytes."""
    integers = scores.astype(np.uint8)
    return integers if np.array_equal(integers, scores) else scores


def deserialise_rows(content: bytes, file_name: str) -> EntryRows:
    """Inverse of `serialise_rows`. Raises `ValueError`, `KeyError`, `OSError` or `BadZipFile` if the content is
    damaged or another file's."""
    with np.load(io.BytesIO(strip_digest(content)), allow_pickle=False) as arrays:
        header = parse_json(arrays["said"].tobytes())
        if header["file"] != file_name:
            raise ValueError(f"the rows of {header['file']}")
        on_id, on_ood = (_deserialise_sample(arrays, view, header["clustering"][view]) for view in VIEWS)
        declared, odd = tuple(header["declared"]), tuple(header["odd"])
        return EntryRows(on_id, on_ood, header["worst"], declared, header["floor"], odd, header["card"])


def _deserialise_sample(arrays: Mapping[str, NDArray[Any]], view: str, clustering: Mapping[str, Any]) -> Sample:
    low, high = arrays[f"{view}.bounds"].tolist()
    if f"{view}.scores" in arrays:
        scores = arrays[f"{view}.scores"].astype(np.float64)
        return RowScores(scores, (low, high), arrays.get(f"{view}.clusters"))
    per_seed = arrays[f"{view}.per_seed"].tolist()
    without, sizes = arrays[f"{view}.without"], arrays[f"{view}.sizes"]
    ends, bias = arrays.get(f"{view}.ends"), float(arrays[f"{view}.bias"])
    return Replicates(per_seed, without, sizes, (low, high), Clustering.from_dict(clustering), ends, bias)


def _read_cached_rows(board: BoardView, standing: ScoredEntry) -> EntryRows | None:
    """The cached rows of an entry; None if there are none, or they do not match its score."""
    try:
        path = _get_rows_path(board, standing)
        rows = deserialise_rows(path.read_bytes(), path.name)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    fits = all(
        estimate_mean(getattr(rows, view)).to_dict() == getattr(standing.score, view).to_dict() for view in VIEWS
    )
    return rows if fits else None
