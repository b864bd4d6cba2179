"""Bringing a file whose sha256 nobody has published: it is pinned as it is when it is first read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...core.canonical import identity_of
from ...core.errors import Unavailable
from ...core.files import cache_root, file_sha256, locked, offline, plain_disk_errors
from ...core.progress import say
from ...splits.pins import FilePin, FirstFile
from .. import mirrors
from ..cache.store import mark
from ..mirrors import MirrorFailed


def fetch_first(wanted: FirstFile, own_folders: tuple[Path, ...] = ()) -> tuple[FilePin, Path]:
    """A file by its name (and size and md5, where they are known), from the folders that the user names, else from its
    mirrors: its pin, and where it lies. Raises `Unavailable` with every reason where none gives it."""
    reasons: list[str] = []
    short = wanted.name.rpartition("/")[2]
    for folder in own_folders:
        for path in sorted(path for path in folder.rglob(short) if path.is_file()):
            if problem := _differs(wanted, path):
                reasons.append(f"{path} {problem}")
                continue
            return FilePin(
                name=wanted.name, sha256=file_sha256(path), bytes=path.stat().st_size, mirrors=wanted.mirrors
            ), path
    for mirror in wanted.mirrors:
        kind, name = mirrors.opened(mirror, wanted.name)
        if kind.NETWORK and offline():
            reasons.append(f"{name}: not reached (offline)")
            continue
        partial = cache_root() / "files" / "first" / f"{identity_of(mirror)[:16]}.part"
        try:
            with locked(partial), plain_disk_errors(partial):
                kind.fetch(mirror, partial, wanted.bytes)
                if problem := _differs(wanted, partial):
                    partial.unlink()
                    raise MirrorFailed(f"gave a file that {problem}")
                digest = file_sha256(partial)
                path = cache_root() / "files" / digest[:2] / digest
                path.parent.mkdir(parents=True, exist_ok=True)
                partial.replace(path)
                mark(path, digest)
        except MirrorFailed as error:
            reasons.append(f"{name}: {error}")
            say(f"{name} failed: {error}")
            continue
        return FilePin(name=wanted.name, sha256=digest, bytes=path.stat().st_size, mirrors=wanted.mirrors), path
    raise Unavailable(
        f"{wanted.name} is not available: {'; '.join(reasons) or 'it has no public address'}. "
        "Put it in a folder under this name, and name the folder with --data"
    )


def _differs(wanted: FirstFile, path: Path) -> str:
    """How a file is not the wanted one; empty where nothing says so."""
    if wanted.bytes is not None and path.stat().st_size != wanted.bytes:
        return f"has {path.stat().st_size:,} bytes, not the published {wanted.bytes:,}"
    if wanted.md5 is not None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
        if found != wanted.md5:
            return f"has md5 {found[:12]}.., not the published {wanted.md5[:12]}.."
    return ""
