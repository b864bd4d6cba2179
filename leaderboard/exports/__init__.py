"""Exports: a board's tables in the formats of others. One file a format, found by its name.

A format's module has `files(board, options) -> dict[str, bytes]`: relative path by path, what to write. It gets a
`Snapshot` (tables/snapshot.py); the same board gives the same bytes. `OPTIONS` names the options that it takes, each
with what it is for; those in `NEEDED` must be given.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...core.errors import FarshiftError
from ...core.files import write_atomically
from ...core.plugins import find_files_by_name, load_module
from ..tables.snapshot import Snapshot

FOLDER = "leaderboard/exports"


def list_formats() -> list[str]:
    """The names of the formats there are, sorted."""
    return sorted(find_files_by_name(FOLDER, ".py"))


def make_export_files(board: Snapshot, format: str, options: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """The files of an export by their relative paths. `UnknownName` for another format, `FarshiftError` for an option
    that it does not take, or lacks."""
    writer = load_module(FOLDER, format, "export format")
    known: dict[str, str] = getattr(writer, "OPTIONS", {})
    given = {name: value for name, value in (options or {}).items() if value}
    for name in given:
        if name not in known:
            raise FarshiftError(f"the format {format} takes no --{name}: leave it out")
    for name in getattr(writer, "NEEDED", ()):
        if name not in given:
            raise FarshiftError(f"the format {format} needs --{name}: {known[name]}")
    files: dict[str, bytes] = writer.files(board, given)
    return files


def write_export(board: Snapshot, format: str, out: Path | str, options: Mapping[str, str] | None = None) -> list[Path]:
    """Write an export: a single file to `out` where `out` has the file's suffix, else all files into the folder `out`.
    Returns what was written, sorted."""
    targets = _make_targets(board, format, Path(out), options)
    for path, content in targets.items():
        write_atomically(path, content, "write it to another place")
    return sorted(targets)


def list_differences(
    board: Snapshot, format: str, out: Path | str, options: Mapping[str, str] | None = None
) -> list[str]:
    """What of an export that was written to `out` is not what the board gives."""
    problems = []
    for path, content in sorted(_make_targets(board, format, Path(out), options).items()):
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif path.read_bytes() != content:
            problems.append(f"{path} is not what the board gives at record {board.head.seq}")
    return problems


def _make_targets(board: Snapshot, format: str, out: Path, options: Mapping[str, str] | None) -> dict[Path, bytes]:
    """What belongs where."""
    files = make_export_files(board, format, options)
    only = next(iter(files)) if len(files) == 1 else ""
    if only and out.suffix == Path(only).suffix and not out.is_dir():
        return {out: files[only]}
    return {out / name: content for name, content in files.items()}
