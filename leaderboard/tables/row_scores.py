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
from ...core.errors import Unavailable, get_first_line
from ...core.files import BOARD_ADVICE, append_digest, strip_digest, write_atomically
from ...core.progress import report_progress
from ..board_view import BoardView
from ..entries import ScoredEntry
from ..submission.validate import ValidRun, validate_submission
from ..validation.card import ModelCard
from .entry_rows import VIEWS, EntryRows, compute_entry_rows
from .table import explain_outdated

CACHE_VERSION = 14
"""Version of the cache format: raise it with every change of the content."""


def read_entry_rows(board: BoardView, standings: Sequence[ScoredEntry]) -> tuple[dict[str, EntryRows], dict[str, str]]:
    """Return the rows of entries by name, and the reason for each entry that has none here: it is of an older identity,
    of a benchmark that is unknown here, or its data are unavailable. Rows that are not cached are computed."""
    known = load_benchmarks()
    reasons = {item.entry: explain_outdated(known, item.score, item.score.entry_identity)[0] for item in standings}
    without = {entry: reason for entry, reason in reasons.items() if reason}
    rows: dict[str, EntryRows] = {}
    lacking: dict[str, list[ScoredEntry]] = {}
    for standing in (standing for standing in standings if standing.entry not in without):
        entry_rows = _read_cached_rows(board, standing)
        if entry_rows is None:
            lacking.setdefault(standing.submission, []).append(standing)
        else:
            rows[standing.entry] = entry_rows
    for number, (submission, group) in enumerate(lacking.items()):
        report_progress("computing rows", number, len(lacking))
        failure = _store_submission_rows(board, submission, group)
        for standing in group:
            entry_rows = _read_cached_rows(board, standing)
            if entry_rows is None:
                other = "its recomputed rows do not match the score in the ledger (run `farshift board verify`)"
                without[standing.entry] = failure or other
            else:
                rows[standing.entry] = entry_rows
    return rows, without


def _get_rows_path(board: BoardView, standing: ScoredEntry) -> Path:
    return make_rows_path(board.derived, standing.entry, standing.submission, standing.score.entry_identity)


def make_rows_path(derived: Path, entry: str, submission: str, identity: str) -> Path:
    """The path of an entry's cached rows, by its name, its submission and the identity of its score."""
    key = compute_identity({"kept": CACHE_VERSION, "submission": submission, "identity": identity})
    return derived / "rows" / f"{entry}-{key[:12]}.npz"


def _store_submission_rows(board: BoardView, submission: str, standings: Sequence[ScoredEntry]) -> str:
    """Compute and cache the rows of entries of one submission. Returns the reason for a failure, or ""."""
    paths = {standing.run: _get_rows_path(board, standing) for standing in standings}
    try:
        read = validate_submission(board.submission_file(submission), set(paths))
    except Unavailable as error:
        return f"its data are unavailable here: {get_first_line(error)}"
    for number, entry in zip(sorted(paths), read.entries, strict=True):
        store_rows(paths[number], entry, read.card.model)
    return ""


def store_rows(path: Path, entry: ValidRun, model: ModelCard) -> None:
    """Compute and cache the rows of a run, with the model card of its team."""
    write_atomically(path, serialise_rows(compute_entry_rows(entry, model), path.name), BOARD_ADVICE)


def serialise_rows(rows: EntryRows, file_name: str) -> bytes:
    """Serialise the rows to the .npz file of this name, followed by a digest."""
    arrays: dict[str, NDArray[Any]] = {}
    for view in VIEWS:
        for name, value in vars(getattr(rows, view)).items():
            if value is not None and name not in ("clustering", "why"):
                arrays[f"{view}.{name}"] = _shrink_scores(np.asarray(value)) if name == "scores" else np.asarray(value)
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
    fields: dict[str, Any] = {name.partition(".")[2]: arrays[name] for name in arrays if name.startswith(f"{view}.")}
    low, high = fields.pop("bounds").tolist()
    if "scores" in fields:
        return RowScores(fields["scores"].astype(np.float64), (low, high), fields.get("clusters"))
    fields |= {"per_seed": fields["per_seed"].tolist(), "bias": float(fields["bias"])}
    return Replicates(bounds=(low, high), clustering=Clustering.from_dict(clustering), **fields)


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
