"""Fetch a source's files: from local folders first, then from its mirrors in order, each checked by sha256."""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ...core.canonical import compute_identity
from ...core.errors import FarshiftError, Unavailable
from ...core.files import compute_file_sha256, get_cache_root, hold_lock, translate_os_errors
from ...core.progress import log_message
from ...core.settings import read_settings
from ...splits.manifest import FilePin, UnpinnedFile
from .. import mirrors
from ..cache.store import is_intact, write_marker
from ..mirrors import MirrorFailed

OWN_COPY = "a folder, and run farshift splits pull NAME --data FOLDER"
"""Where the user's copy of data without a pinned content goes: only a pull reads it, and compares its counts."""


def fetch_file(pin: FilePin, own_folders: tuple[Path, ...] = ()) -> Path:
    """Return the cached path of a file with exactly the pinned content, fetching it if needed.

    A file with a wrong digest is removed and reported, and the next mirror is tried. Raises `Unavailable` with each
    mirror's reason if none has the file.
    """
    path = get_file_path(pin.sha256)
    if is_intact(path):
        return path
    reasons: list[str] = []
    with hold_lock(path):
        if is_intact(path):
            return path
        with translate_os_errors(path):
            is_pinned = path.exists() and compute_file_sha256(path) == pin.sha256  # only its marker was lost
            if path.exists() and not is_pinned:
                log_message(f"{path} ({pin.name}) is truncated or modified: fetching it again")
            if (
                is_pinned
                or _copy_own_file(pin, path, own_folders, reasons)
                or mirrors.try_mirrors(pin.mirrors, pin.name, reasons, partial(_download_file, pin, path))
            ):
                write_marker(path, pin.sha256)
                return path
    raise Unavailable(
        f"{pin.name} is not available: {'; '.join(reasons) or 'it has no mirrors'}. "
        f"Put a copy in a folder that FARSHIFT_MIRRORS names (sha256 {pin.sha256[:12]}..)"
    )


def get_file_path(digest: str) -> Path:
    """Return where the cache stores the file with this sha256."""
    return get_cache_root() / "files" / digest[:2] / digest


def _copy_own_file(pin: FilePin, path: Path, own_folders: tuple[Path, ...], reasons: list[str]) -> bool:
    match, changed = _find_own_file(pin, list_own_folders(own_folders))
    for other in changed:
        reasons.append(f"{other} has another sha256 (left unchanged)")
        log_message(f"{other} is not the pinned {pin.name} (another sha256): ignored")
    if match is None:
        return False
    temporary = path.with_name(path.name + ".copy")
    shutil.copyfile(match, temporary)
    temporary.replace(path)
    return True


def list_own_folders(extra: tuple[Path, ...] = ()) -> list[Path]:
    """Return the folders of `--mirror` and of `FARSHIFT_MIRRORS`. Raises an error if one does not exist."""
    paths = [*extra, *read_settings().mirrors]
    for folder in paths:
        if not folder.is_dir():
            raise FarshiftError(f"mirror {folder} is not a folder")
    return paths


def _find_own_file(pin: FilePin, folders: list[Path]) -> tuple[Path | None, list[Path]]:
    """The first file with the pinned content in the folders (files of the same name first), and the files of this name
    with other content, unless the first has this name too."""
    changed: list[Path] = []
    other: set[Path] = set()
    for folder in folders:
        # A source may have thousands of files: a folder is listed again only for a file that was not there.
        for list_files in (_listings.get, _list_files):
            files = list_files(folder) or []
            of_name = [path for path, _ in files if path.name == pin.name]
            of_size = [path for path, length in files if length == pin.bytes and path not in other]
            for path in sorted(of_size, key=lambda path: path.name != pin.name):
                if path.is_file() and path.stat().st_size == pin.bytes and compute_file_sha256(path) == pin.sha256:
                    return path, [] if path.name == pin.name else changed + of_name
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


def _download_file(pin: FilePin, path: Path, kind: ModuleType, mirror: dict[str, Any]) -> bool:
    # Each mirror has its own partial file: a download is never resumed from another mirror.
    target = path.with_name(f"{path.name}.{compute_identity(mirror)[:8]}.part")
    resumed = target.exists()
    while True:
        kind.fetch(mirror, target, pin.bytes)
        if (digest := compute_file_sha256(target)) == pin.sha256:
            target.replace(path)
            return True
        target.unlink()
        if not resumed:
            raise MirrorFailed(f"returned another file (sha256 {digest[:12]}..) than the pinned {pin.name}")
        resumed = False  # the partial file may have been damaged: the download is restarted once


def fetch_unpinned_file(target: UnpinnedFile, own_folders: tuple[Path, ...] = ()) -> tuple[FilePin, Path]:
    """Fetch a file without a published sha256 by name (and size and md5, if known) from the user's folders, else from
    its mirrors. Returns its pin and path. Raises `Unavailable` with the reason for each place if none has it."""
    reasons: list[str] = []
    path = _find_unpinned_file(target, own_folders, reasons) or mirrors.try_mirrors(
        target.mirrors, target.name, reasons, partial(_download_unpinned_file, target)
    )
    if path is None:
        raise Unavailable(
            f"{target.name} is not available: {'; '.join(reasons) or 'it has no public address'}. "
            f"Put it under this name in {OWN_COPY}"
        )
    digest, size = compute_file_sha256(path), path.stat().st_size
    return FilePin(name=target.name, sha256=digest, bytes=size, mirrors=target.mirrors), path


def _find_unpinned_file(target: UnpinnedFile, own_folders: tuple[Path, ...], reasons: list[str]) -> Path | None:
    for own_folder in own_folders:
        for path in sorted(own_folder.rglob(target.name.rpartition("/")[2])):
            if path.is_file():
                if not (problem := _describe_difference(target, path)):
                    return path
                reasons.append(f"{path} {problem}")
    return None


def _download_unpinned_file(target: UnpinnedFile, kind: ModuleType, mirror: dict[str, Any]) -> Path:
    unfinished = get_cache_root() / "files" / "first" / f"{compute_identity(mirror)[:16]}.part"
    with hold_lock(unfinished), translate_os_errors(unfinished):
        kind.fetch(mirror, unfinished, target.bytes)
        if problem := _describe_difference(target, unfinished):
            unfinished.unlink()
            raise MirrorFailed(f"returned a file that {problem}")
        digest = compute_file_sha256(unfinished)
        path = get_file_path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.replace(path)
        write_marker(path, digest)
    return path


def _describe_difference(target: UnpinnedFile, path: Path) -> str:
    """How a file differs from the wanted one; empty if no difference is known."""
    if target.bytes is not None and path.stat().st_size != target.bytes:
        return f"has {path.stat().st_size:,} bytes instead of the published {target.bytes:,}"
    if target.md5 is not None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if digest != target.md5:
            return f"has md5 {digest[:12]}.. instead of the published {target.md5[:12]}.."
    return ""
