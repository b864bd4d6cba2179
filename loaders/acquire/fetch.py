"""Bringing a source's files: local folders first, then its mirrors in order, each held to the pinned sha256."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

from ...core.canonical import identity_of
from ...core.errors import Unavailable
from ...core.files import cache_root, file_sha256, locked, offline, plain_disk_errors
from ...core.progress import say
from ...splits.pins import FilePin
from .. import mirrors
from ..cache.store import intact, mark
from ..mirrors import MirrorFailed, folder


def fetch_file(pin: FilePin, own_folders: tuple[Path, ...] = ()) -> Path:
    """The path of a file with exactly the pinned content, in the cache.

    A mirror's file with another digest is set aside under `quarantine/`, named, and the next mirror is tried.
    Raises `Unavailable` with every mirror's reason where none gives the file.
    """
    path = cache_root() / "files" / pin.sha256[:2] / pin.sha256
    if intact(path):
        return path
    with locked(path):
        if intact(path):
            return path
        reasons: list[str] = []
        with plain_disk_errors(path):
            if path.exists():
                if file_sha256(path) == pin.sha256:  # its marker alone was lost
                    mark(path, pin.sha256)
                    return path
                say(f"{path} ({pin.name}) was cut off or changed: fetching it again")
            for bring in (_from_folders, _from_mirrors):
                if bring(pin, path, own_folders, reasons):
                    mark(path, pin.sha256)
                    return path
        tried = "; ".join(reasons) or "it has no mirrors"
        raise Unavailable(
            f"{pin.name} is not available: {tried}. "
            f"Put a copy (sha256 {pin.sha256[:12]}..) in a folder and name it with --mirror or FARSHIFT_MIRRORS"
        )


def _from_folders(pin: FilePin, path: Path, own: tuple[Path, ...], reasons: list[str]) -> bool:
    found, changed = folder.find(pin.name, pin.sha256, pin.bytes, folder.folders(own))
    for other in changed:
        reasons.append(f"{other} has another sha256 (left as it is)")
        say(f"{other} is not the pinned {pin.name}: another sha256; passed over")
    if found is None:
        return False
    temporary = path.with_name(path.name + ".copy")
    shutil.copyfile(found, temporary)
    temporary.replace(path)
    return True


def _from_mirrors(pin: FilePin, path: Path, own: tuple[Path, ...], reasons: list[str]) -> bool:
    for mirror in pin.mirrors:
        kind, name = mirrors.opened(mirror, pin.name)
        if kind.NETWORK and offline():
            reasons.append(f"{name}: not asked (offline)")
            continue
        # Each mirror has its own partial file: what one gave is never continued with another's bytes.
        partial = path.with_name(f"{path.name}.{identity_of(mirror)[:8]}.part")
        try:
            digest = _fetched(kind, mirror, partial, pin)
        except MirrorFailed as error:
            reasons.append(f"{name}: {error}")
            say(f"{name} failed: {error}")
            continue
        if digest == pin.sha256:
            partial.replace(path)
            return True
        aside = cache_root() / "quarantine" / f"{digest[:12]}-{pin.name}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        partial.replace(aside)
        reasons.append(f"{name}: gave another file (sha256 {digest[:12]}.., kept as {aside})")
        say(f"{name} gave a file that is not the pinned {pin.name}; kept as {aside}")
    return False


def _fetched(kind: ModuleType, mirror: dict[str, Any], partial: Path, pin: FilePin) -> str:
    """The sha256 of what the mirror gave. A download that went on from an older piece and does not fit is begun again
    once: the piece may have been damaged."""
    resumed = partial.exists()
    kind.fetch(mirror, partial, pin.bytes)
    digest = file_sha256(partial)
    if resumed and digest != pin.sha256:
        partial.unlink()
        kind.fetch(mirror, partial, pin.bytes)
        digest = file_sha256(partial)
    return digest
