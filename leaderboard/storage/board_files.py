"""The files of a board: those that its records name, and how new ones are added.

A record names its files in `body["files"]`: {path in the board's folder: sha256}. New files are first written to
`incoming/`, then the records are appended, then the files are moved into place. A process that is killed in between
leaves either files that no record names, which the next process deletes, or files that a record names, which the next
process moves.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...core.files import BOARD_ADVICE, compute_file_sha256, fsync_folder, translate_os_errors, write_atomically
from ..ledger import Record

INCOMING = "incoming"
UPLOADS = "uploads"
"""The folder of a server for submissions that are not entered or refused yet."""
_PRIVATE = ("private", INCOMING, "site", UPLOADS)
_PATH = re.compile(r"[a-z_]{1,40}(/[A-Za-z0-9][A-Za-z0-9._-]{0,150}){1,4}")


def find_path_problem(path: Any) -> str:
    """The problem of a path that a record names; empty if there is none. Records may be untrusted: a path must stay in
    the board's folder, and must not name its private files."""
    if not isinstance(path, str) or not _PATH.fullmatch(path) or path.split("/")[0] in _PRIVATE:
        return f"names {str(path)[:80]!r}, which is not a valid path for a board's file"
    return ""


def list_named_files(records: Iterable[Record]) -> dict[str, str]:
    """Every file that records name: path in the board's folder to sha256. The first record that names a path counts:
    files never change. Invalid paths are left out (`find_file_problems` lists them)."""
    known_files: dict[str, str] = {}
    for record in records:
        for path, digest in _read_named_files(record).items():
            if not find_path_problem(path):
                known_files.setdefault(path, str(digest))
    return known_files


def find_file_problems(records: Iterable[Record]) -> list[str]:
    """The problems of the files that records name."""
    problems: list[str] = []
    known: dict[str, Any] = {}
    for record in records:
        if not isinstance(record.body.get("files", {}), dict):
            problems.append(f"record {record.seq}: files is not a mapping")
        for path, digest in _read_named_files(record).items():
            if problem := find_path_problem(path):
                problems.append(f"record {record.seq} {problem}")
            elif known.setdefault(path, digest) != digest:
                problems.append(f"record {record.seq} names {path} with another digest than an earlier record")
    return problems


def list_public_files(records: Sequence[Record]) -> dict[str, str]:
    """The named files that are public: without the submissions to sealed windows that are not revealed."""
    revealed = {record.body.get("window") for record in records if record.kind == "seed_revealed"}
    hidden = {
        path
        for record in records
        if record.kind == "submitted" and record.body.get("window") not in (None, *revealed)
        for path in _read_named_files(record)
    }
    return {path: digest for path, digest in list_named_files(records).items() if path not in hidden}


def _read_named_files(record: Record) -> dict[str, Any]:
    files = record.body.get("files", {})
    return files if isinstance(files, dict) else {}


def compute_digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """The entry `files` of a record for some files."""
    return {path: sha256(content).hexdigest() for path, content in sorted(files.items())}


def stage_files(board: Path, name: str, files: Mapping[str, bytes]) -> Path:
    """Write files to `incoming/<name>/`. They are on the disk when this returns."""
    staged = board / INCOMING / name
    folders = {staged}
    for path, content in sorted(files.items()):
        if problem := find_path_problem(path):
            raise ValueError(f"a record {problem}")
        write_atomically(staged / path, content, BOARD_ADVICE)
        folders |= {parent for parent in (staged / path).parents if parent.is_relative_to(staged)}
    with translate_os_errors(staged, BOARD_ADVICE):
        for folder in sorted(folders):
            fsync_folder(folder)
        fsync_folder(staged.parent)
        fsync_folder(board)
    return staged


def publish_files(board: Path, staged: Path, named: Mapping[str, str]) -> None:
    """Move the files that records name from `staged` into place, and delete the rest."""
    with translate_os_errors(board, BOARD_ADVICE):
        for path in sorted(staged.rglob("*")):
            name = path.relative_to(staged).as_posix()
            if path.is_file() and name in named and compute_file_sha256(path) == named[name]:
                (board / name).parent.mkdir(parents=True, exist_ok=True)
                path.replace(board / name)
        shutil.rmtree(staged)


def recover_staged_files(board: Path, records: Iterable[Record]) -> list[str]:
    """Complete or roll back unfinished commits in `incoming/`. The caller must hold the board's lock. Returns the paths
    of deleted files, which no record names."""
    staged_folders = sorted((board / INCOMING).iterdir())
    if not staged_folders:
        return []
    named = list_named_files(records)
    discarded_paths = []
    for staged in staged_folders:
        paths = (path.relative_to(staged).as_posix() for path in sorted(staged.rglob("*")) if path.is_file())
        discarded_paths += [path for path in paths if path not in named and not find_path_problem(path)]
        publish_files(board, staged, named)
    return discarded_paths


def resolve_file(folder: Path, path: str) -> Path | None:
    """A file below `folder`; None for a path that leads elsewhere."""
    file = folder / path
    return None if find_path_problem(path) or file.is_symlink() or not file.is_file() else file


def list_files(path: Path, folders: set[str]) -> list[str]:
    """The files below some folders of `path`, sorted, without temporary files of unfinished writes."""
    files = [item for folder in folders for item in (path / folder).rglob("*") if item.is_file()]
    return sorted(item.relative_to(path).as_posix() for item in files if not item.name.startswith("."))
