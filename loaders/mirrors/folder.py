"""A local folder: the user's own copy, found by size and sha256 under any name."""

from __future__ import annotations

from pathlib import Path

from ...core.errors import FarshiftError
from ...core.files import compute_file_sha256
from ...core.settings import read_settings

NETWORK = False


def list_folders(extra: tuple[Path, ...] = ()) -> list[Path]:
    """Return the folders of `--mirror` and of `FARSHIFT_MIRRORS`. Raises an error if one does not exist."""
    paths = [*extra, *read_settings().mirrors]
    for folder in paths:
        if not folder.is_dir():
            raise FarshiftError(f"mirror {folder} is not a folder")
    return paths


def list_named_sizes() -> set[tuple[str, int]]:
    """Return name and size of every file in the folders of `FARSHIFT_MIRRORS`."""
    files = (path for folder in list_folders() for path in folder.rglob("*"))
    return {(path.name, path.stat().st_size) for path in files if path.is_file()}


def find_file(name: str, digest: str, size: int, where: list[Path]) -> tuple[Path | None, list[Path]]:
    """Return the first file with this size and sha256 in the folders (files of the same name first), and the files with
    this name but other content."""
    changed: list[Path] = []
    for folder in where:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in sorted(files, key=lambda path: path.name != name):
            if path.stat().st_size == size and compute_file_sha256(path) == digest:
                return path, changed
            if path.name == name:
                changed.append(path)
    return None, changed
