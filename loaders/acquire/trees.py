"""Fetch a folder of many files, pinned by its git tree hash: the user's own copy if there is one, else an archive of a
mirror."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ...core.canonical import compute_identity
from ...core.errors import BadData, Unavailable
from ...core.files import compute_file_sha256, get_cache_root, hold_lock, translate_os_errors
from ...splits.manifest import TreePin
from .. import mirrors
from ..cache.store import is_intact, write_marker
from ..files.patterns import is_hidden
from .archive_files import ArchiveFiles, is_archive, open_archive
from .fetch import OWN_COPY, list_own_folders


def fetch_tree(pin: TreePin, own_folders: tuple[Path, ...] = ()) -> tuple[TreePin, ArchiveFiles]:
    """Return the files of a folder with exactly the pinned content, and the pin with its hash filled in if it had none.

    The user's own folder or archive is read in place; a mirror's archive is stored in the cache. Raises `Unavailable`
    with the reason for each place if none has it.
    """
    reasons: list[str] = []
    if tree := _find_own_copy(pin, own_folders, reasons):
        return tree
    sources = zip(pin.mirrors, list_tree_paths(pin), strict=True)
    for mirror, path in sorted(sources, key=lambda source: not source[1].exists()):
        if is_intact(path) or mirrors.try_mirrors([mirror], pin.name, reasons, partial(_download_tree, path)):
            _, name = mirrors.load_mirror(mirror, pin.name)
            if tree := _open_pinned_tree(pin, path, name, str(mirror.get("folder", "")), reasons):
                return tree
            path.unlink(missing_ok=True)
    where = f"a folder that FARSHIFT_MIRRORS names (git tree {pin.tree[:12]}..)" if pin.tree else OWN_COPY
    raise Unavailable(
        f"{pin.name} is not available: {'; '.join(reasons) or 'it has no mirrors'}. "
        f"Put a copy, unpacked or as an archive, in {where}"
    )


def list_tree_paths(pin: TreePin) -> list[Path]:
    """Return where the cache stores the archive of each mirror of a tree. Trees of one archive share its file."""
    archives = ({key: value for key, value in mirror.items() if key != "folder"} for mirror in pin.mirrors)
    return [get_cache_root() / "trees" / compute_identity(archive)[:40] for archive in archives]


def _download_tree(path: Path, kind: ModuleType, mirror: dict[str, Any]) -> bool:
    with hold_lock(path), translate_os_errors(path):
        if not is_intact(path):
            unfinished = path.with_name(f"{path.name}.{compute_identity(mirror)[:8]}.part")
            kind.fetch(mirror, unfinished, None)
            unfinished.replace(path)
            write_marker(path, compute_file_sha256(path))
    return True


def _find_own_copy(
    pin: TreePin, own_folders: tuple[Path, ...], reasons: list[str]
) -> tuple[TreePin, ArchiveFiles] | None:
    """The folder itself, a folder of the pin's name in it, or an archive of either; or its subfolder that has the name
    the mirror uses. A tree that is not pinned yet is read only from the folders that the user gives for this pull,
    never from `FARSHIFT_MIRRORS`."""
    locations = list_own_folders(own_folders) if pin.tree else own_folders
    below = dict.fromkeys(["", pin.name, *(str(mirror.get("folder", "")) for mirror in pin.mirrors)])
    candidates = (path for each in locations for path in _list_candidates(pin, each, each in own_folders))
    for path in dict.fromkeys(candidates):
        refused: list[str] = []
        for name in below:
            if tree := _open_pinned_tree(pin, path, str(path), name, refused):
                return tree
        reasons += refused[:1]
    return None


def _list_candidates(pin: TreePin, location: Path, own: bool) -> list[Path]:
    """Candidates for the tree in a folder, most likely first. The folder itself, and archives of other names, only in
    one that the user gives for this pull; the folder before the archives if it contains more than archives."""
    archives = [path for path in sorted(location.iterdir()) if path.is_file() and is_archive(path)]
    named = [path for path in (location / pin.name, *sorted(location.glob(f"*/{pin.name}"))) if path.is_dir()]
    named += [path for path in archives if path.name.startswith(f"{pin.name}.")]
    if not own:
        return named
    has_other_files = any(path not in archives and not is_hidden(path.name) for path in location.iterdir())
    return list(dict.fromkeys([*named, *[location] * has_other_files, *archives, location]))


def _open_pinned_tree(
    pin: TreePin, path: Path, name: str, below: str, reasons: list[str]
) -> tuple[TreePin, ArchiveFiles] | None:
    """The tree at a path if it is the pinned one; else the reason is added to `reasons`."""
    refused: list[str] = []
    try:
        files = _find_inner_folder(open_archive(path, name), below, pin)
        for view in _list_views(files):
            if pin.files is not None and len(view.names()) != pin.files:
                refused.append(f"{name} has {len(view.names()):,} files, but {pin.name} has {pin.files:,}")
                continue
            hashes, count, size = list_tree_hashes(view)
            if not pin.tree or {pin.tree, pin.plain} & set(hashes):
                return pin.model_copy(update={"tree": pin.tree or hashes[0], "files": count}), files
            refused.append(f"{name} has {count:,} files ({size:,} bytes) of another tree hash ({hashes[0][:12]}..)")
    except BadData as error:
        refused.append(str(error))
    reasons.append(refused[-1])
    return None


def _list_views(files: ArchiveFiles) -> list[ArchiveFiles]:
    """What the pin of a folder may cover: all files, as in git, or only the data files."""
    return list(dict.fromkeys([files, files.visible()]))


def _find_inner_folder(files: ArchiveFiles, below: str, pin: TreePin) -> ArchiveFiles:
    """The wanted folder of an archive. A single top-level folder (as in GitHub's archives) is skipped."""
    while True:
        tops = {name.partition("/")[0] for name in files.names()}
        if below and below.split("/")[0] in tops:
            return files.subdir(below)
        if not below and any(len(view.names()) == pin.files for view in _list_views(files)):
            return files
        if len(tops) != 1 or any("/" not in name for name in files.names()):
            return files.subdir(below)
        files = files.subdir(tops.pop())


# The git tree hash of a folder, which identifies thousands of files by one number.


def list_tree_hashes(files: ArchiveFiles) -> tuple[list[str], int, int]:
    """Return the possible git hashes of a folder, and its number of files and of bytes. Some file systems and archives
    lose the executable bit, so the hashes are for the modes found, for none executable, and for all executable."""
    blobs, total = {}, 0
    for name, content in files.walk():
        blobs[name] = _hash_object(b"blob", content)
        total += len(content)
    modes = ([files.executable(name) for name in blobs], [False] * len(blobs), [True] * len(blobs))
    hashes = [_hash_tree(zip(blobs, blobs.values(), mode, strict=True)) for mode in modes]
    return list(dict.fromkeys(hashes)), len(blobs), total


def _hash_object(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\0" % (kind, len(content)) + content, usedforsecurity=False).digest()


def _hash_tree(blobs: Iterable[tuple[str, bytes, bool]]) -> str:
    """The git tree hash of files, each given as path, blob hash, and whether it is executable. Equal to
    `git rev-parse COMMIT:FOLDER`."""
    root: dict[str, Any] = {}
    for path, digest, executable in blobs:
        *folders, name = path.split("/")
        node = root
        for step in folders:
            node = node.setdefault(f"{step}/", {})
        node[name] = b"100755 " if executable else b"100644 ", digest
    return _hash_folder(root).hex()


def _hash_folder(entries: dict[str, Any]) -> bytes:
    """The git hash of a folder; names of folders in it end with a slash, as in git's order."""
    content = b""
    for name, entry in sorted(entries.items(), key=lambda item: item[0].encode()):
        mode, digest = (b"40000 ", _hash_folder(entry)) if isinstance(entry, dict) else entry
        content += mode + name.rstrip("/").encode() + b"\0" + digest
    return _hash_object(b"tree", content)
