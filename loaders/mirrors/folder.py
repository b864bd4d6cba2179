"""A local folder: the user's own copy, found by size and sha256 under any name."""

from __future__ import annotations

import os
from contextlib import suppress
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


def find_file(name: str, digest: str, size: int, where: list[Path]) -> tuple[Path | None, list[Path]]:
    """Return the first file with this size and sha256 in the folders (files of the same name first), and the files with
    this name but other content, unless it is the first's name too."""
    changed: list[Path] = []
    other: set[Path] = set()
    for folder in where:
        # A source may have thousands of files: a folder is listed again only for a file that was not there.
        for list_files in (_listings.get, _list_files):
            files = list_files(folder) or []
            of_name = [path for path, _ in files if path.name == name]
            of_size = [path for path, length in files if length == size and path not in other]
            for path in sorted(of_size, key=lambda path: path.name != name):
                if path.is_file() and path.stat().st_size == size and compute_file_sha256(path) == digest:
                    return path, [] if path.name == name else changed + of_name
                other.add(path)
        changed += of_name
    return None, changed


_listings: dict[Path, list[tuple[Path, int]]] = {}
"""Path and size of the files below each folder, as last listed by this process."""


def _list_files(folder: Path) -> list[tuple[Path, int]]:
    files = []
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                path = Path(root, name)
                if path.is_file():
                    files.append((path, path.stat().st_size))
    _listings[folder] = sorted(files)
    return _listings[folder]
