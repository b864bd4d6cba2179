"""Exports of a board's tables to other formats. Each module is a format, found by its name.

A format's module has `files(board, options) -> dict[str, bytes]`, which returns the content of each file by relative
path. Its argument is a `Snapshot` (tables/snapshot.py); the same board gives the same bytes. `OPTIONS` has the accepted
options with their descriptions; those in `NEEDED` are required.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...core.errors import FarshiftError
from ...core.files import write_atomically
from ...core.plugins import load_module
from ..tables.snapshot import Snapshot

FOLDER = "leaderboard/exports"


def make_export_files(board: Snapshot, format: str, options: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """Return the files of an export by relative path. Raises `UnknownName` for an unknown format, `FarshiftError` for
    an unknown or missing option."""
    writer = load_module(FOLDER, format, "export format")
    known: dict[str, str] = getattr(writer, "OPTIONS", {})
    given = {name: value for name, value in (options or {}).items() if value}
    for name in given:
        if name not in known:
            raise FarshiftError(f"the format {format} has no option --{name}: remove it")
    for name in getattr(writer, "NEEDED", ()):
        if name not in given:
            raise FarshiftError(f"the format {format} needs --{name}: {known[name]}")
    files: dict[str, bytes] = writer.files(board, given)
    return files


def write_export(board: Snapshot, format: str, out: Path | str, options: Mapping[str, str] | None = None) -> list[Path]:
    """Write an export: a single file to `out` if `out` has the file's suffix, else all files to the folder `out`.
    Returns the written paths, sorted."""
    targets = _make_targets(board, format, Path(out), options)
    for path, content in targets.items():
        write_atomically(path, content, "write it to another place")
    return list(targets)


def list_differences(
    board: Snapshot, format: str, out: Path | str, options: Mapping[str, str] | None = None
) -> list[str]:
    """Return the problems of an export in `out`: files that are missing or differ from the board."""
    problems = []
    for path, content in _make_targets(board, format, Path(out), options).items():
        if not path.is_file():
            problems.append(f"{path} is missing")
        elif path.read_bytes() != content:
            problems.append(f"{path} differs from the board's export at record {board.head.seq}")
    return problems


def _make_targets(board: Snapshot, format: str, out: Path, options: Mapping[str, str] | None) -> dict[Path, bytes]:
    files = make_export_files(board, format, options)
    only = next(iter(files)) if len(files) == 1 else ""
    if only and out.suffix == Path(only).suffix and not out.is_dir():
        return {out: files[only]}
    return {out / name: files[name] for name in sorted(files)}
