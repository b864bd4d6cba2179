"""Fetch a file without a published sha256: it is pinned when it is first read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ...core.canonical import compute_identity
from ...core.errors import Unavailable
from ...core.files import compute_file_sha256, get_cache_root, hold_lock, is_offline, translate_os_errors
from ...core.progress import log_message
from ...splits.pins import FilePin, UnpinnedFile
from .. import mirrors
from ..cache.store import write_marker
from ..mirrors import MirrorFailed


def fetch_unpinned_file(target: UnpinnedFile, own_folders: tuple[Path, ...] = ()) -> tuple[FilePin, Path]:
    """Fetch a file by name (and size and md5, if known) from the user's folders, else from its mirrors. Returns its pin
    and path. Raises `Unavailable` with the reason for each place if none has it."""
    reasons: list[str] = []
    short = target.name.rpartition("/")[2]
    for folder in own_folders:
        for path in sorted(path for path in folder.rglob(short) if path.is_file()):
            if problem := _describe_difference(target, path):
                reasons.append(f"{path} {problem}")
                continue
            return FilePin(
                name=target.name, sha256=compute_file_sha256(path), bytes=path.stat().st_size, mirrors=target.mirrors
            ), path
    for mirror in target.mirrors:
        kind, name = mirrors.load_mirror(mirror, target.name)
        if kind.NETWORK and is_offline():
            reasons.append(f"{name}: not tried (offline)")
            continue
        partial = get_cache_root() / "files" / "first" / f"{compute_identity(mirror)[:16]}.part"
        try:
            with hold_lock(partial), translate_os_errors(partial):
                kind.fetch(mirror, partial, target.bytes)
                if problem := _describe_difference(target, partial):
                    partial.unlink()
                    raise MirrorFailed(f"returned a file that {problem}")
                digest = compute_file_sha256(partial)
                path = get_cache_root() / "files" / digest[:2] / digest
                path.parent.mkdir(parents=True, exist_ok=True)
                partial.replace(path)
                write_marker(path, digest)
        except MirrorFailed as error:
            reasons.append(f"{name}: {error}")
            log_message(f"{name} failed: {error}")
            continue
        return FilePin(name=target.name, sha256=digest, bytes=path.stat().st_size, mirrors=target.mirrors), path
    raise Unavailable(
        f"{target.name} is not available: {'; '.join(reasons) or 'it has no public address'}. "
        "Put it in a folder under this name, and give the folder by --data"
    )


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
