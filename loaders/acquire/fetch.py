"""Fetch a source's files: from local folders first, then from its mirrors in order, each checked by sha256."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

from ...core.canonical import compute_identity
from ...core.errors import Unavailable
from ...core.files import compute_file_sha256, get_cache_root, hold_lock, is_offline, translate_os_errors
from ...core.progress import log_message
from ...splits.pins import FilePin
from .. import mirrors
from ..cache.store import is_intact, write_marker
from ..mirrors import MirrorFailed, folder


def fetch_file(pin: FilePin, own_folders: tuple[Path, ...] = ()) -> Path:
    """Return the cached path of a file with exactly the pinned content, fetching it if needed.

    A file with a wrong digest is removed and reported, and the next mirror is tried. Raises `Unavailable` with each
    mirror's reason if none has the file.
    """
    path = get_cache_root() / "files" / pin.sha256[:2] / pin.sha256
    if is_intact(path):
        return path
    with hold_lock(path):
        if is_intact(path):
            return path
        reasons: list[str] = []
        with translate_os_errors(path):
            if path.exists():
                if compute_file_sha256(path) == pin.sha256:  # only its marker was lost
                    write_marker(path, pin.sha256)
                    return path
                log_message(f"{path} ({pin.name}) is truncated or modified: fetching it again")
            for bring in (_fetch_from_folders, _fetch_from_mirrors):
                if bring(pin, path, own_folders, reasons):
                    write_marker(path, pin.sha256)
                    return path
        tried = "; ".join(reasons) or "it has no mirrors"
        raise Unavailable(
            f"{pin.name} is not available: {tried}. "
            f"Put a copy (sha256 {pin.sha256[:12]}..) in a folder and give the folder by --mirror or FARSHIFT_MIRRORS"
        )


def _fetch_from_folders(pin: FilePin, path: Path, own: tuple[Path, ...], reasons: list[str]) -> bool:
    match, changed = folder.find_file(pin.name, pin.sha256, pin.bytes, folder.list_folders(own))
    for other in changed:
        reasons.append(f"{other} has another sha256 (left unchanged)")
        log_message(f"{other} is not the pinned {pin.name} (another sha256): ignored")
    if match is None:
        return False
    temporary = path.with_name(path.name + ".copy")
    shutil.copyfile(match, temporary)
    temporary.replace(path)
    return True


def _fetch_from_mirrors(pin: FilePin, path: Path, own: tuple[Path, ...], reasons: list[str]) -> bool:
    for mirror in pin.mirrors:
        kind, name = mirrors.load_mirror(mirror, pin.name)
        if kind.NETWORK and is_offline():
            reasons.append(f"{name}: not tried (offline)")
            continue
        # Each mirror has its own partial file: a download is never resumed from another mirror.
        partial = path.with_name(f"{path.name}.{compute_identity(mirror)[:8]}.part")
        try:
            digest = _download_file(kind, mirror, partial, pin)
        except MirrorFailed as error:
            reasons.append(f"{name}: {error}")
            log_message(f"{name} failed: {error}")
            continue
        if digest == pin.sha256:
            partial.replace(path)
            return True
        partial.unlink()
        reasons.append(f"{name}: returned another file (sha256 {digest[:12]}..)")
        log_message(f"{name} returned a file that is not the pinned {pin.name} (sha256 {digest[:12]}..)")
    return False


def _download_file(kind: ModuleType, mirror: dict[str, Any], partial: Path, pin: FilePin) -> str:
    """Download the file and return its sha256. A resumed download with a wrong digest is restarted once, since the
    partial file may have been damaged."""
    resumed = partial.exists()
    kind.fetch(mirror, partial, pin.bytes)
    digest = compute_file_sha256(partial)
    if resumed and digest != pin.sha256:
        partial.unlink()
        kind.fetch(mirror, partial, pin.bytes)
        digest = compute_file_sha256(partial)
    return digest
