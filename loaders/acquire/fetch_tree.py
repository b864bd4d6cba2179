"""Bringing a folder of many files: a copy of the user's own where there is one, else an archive from a mirror.

Either is held to the hash that git gives the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core.canonical import identity_of
from ...core.errors import BadData, Unavailable
from ...core.files import cache_root, file_sha256, locked, offline, plain_disk_errors
from ...core.progress import say
from ...splits.pins import TreePin
from .. import mirrors
from ..cache.store import intact, mark
from ..files.hidden import is_hidden
from ..mirrors import MirrorFailed, folder
from .git_tree import tree_hashes
from .members import Members, is_archive, members


def fetch_tree(pin: TreePin, own_folders: tuple[Path, ...] = ()) -> tuple[TreePin, Members]:
    """The files of a folder with exactly the pinned content, and the pin with its hash filled in where it had none.

    A folder or archive of the user's own is read where it lies; what a mirror gives is kept in the cache. Raises
    `Unavailable` with each place's reason where none gives it.
    """
    reasons: list[str] = []
    if found := _own_copy(pin, own_folders, reasons):
        return found
    for mirror in pin.mirrors:
        kind, name = mirrors.opened(mirror, pin.name)
        path = cache_root() / "trees" / (pin.tree or identity_of(mirror)[:40])
        if not intact(path):
            if kind.NETWORK and offline():
                reasons.append(f"{name}: not reached (offline)")
                continue
            with locked(path), plain_disk_errors(path):
                if not intact(path):
                    try:
                        _bring(kind, mirror, path)
                    except MirrorFailed as error:
                        reasons.append(f"{name}: {error}")
                        say(f"{name} failed: {error}")
                        continue
        if found := _held(pin, path, name, str(mirror.get("folder", "")), reasons):
            return found
        path.unlink(missing_ok=True)
    hint = f"git tree {pin.tree[:12]}.." if pin.tree else "as it was published"
    raise Unavailable(
        f"{pin.name} is not available: {'; '.join(reasons) or 'it has no mirrors'}. "
        f"Put a copy ({hint}) in a folder, unpacked or as an archive, and name it with --data or FARSHIFT_MIRRORS"
    )


def at_hand(pin: TreePin) -> bool:
    """Whether a folder of `FARSHIFT_MIRRORS` has something of the tree's name, folder or archive; what it holds is not
    looked at."""
    return bool(pin.tree) and any(_candidates(pin, place, False) for place in folder.folders())


def _bring(kind: Any, mirror: dict[str, Any], path: Path) -> None:
    partial = path.with_name(f"{path.name}.{identity_of(mirror)[:8]}.part")
    kind.fetch(mirror, partial, None)
    partial.replace(path)
    mark(path, file_sha256(path))


def _own_copy(pin: TreePin, own_folders: tuple[Path, ...], reasons: list[str]) -> tuple[TreePin, Members] | None:
    """The folder itself, a folder of the pin's name in it, or an archive of either. A tree that is not pinned yet is
    taken from the folders that the user names for this pull only, never from `FARSHIFT_MIRRORS`."""
    tried: set[Path] = set()
    for place in folder.folders(own_folders) if pin.tree else own_folders:
        for path in _candidates(pin, place, place in own_folders):
            if path not in tried and (found := _held_somewhere(pin, path, reasons)):
                return found
            tried.add(path)
    return None


def _candidates(pin: TreePin, place: Path, own: bool) -> list[Path]:
    """What may be the tree in a folder, likeliest first. Archives of other names are looked into only in a folder that
    the user names for this pull. Where nothing pins the tree, one of another name is taken for it only if it is the
    only one, and the folder itself before it, if it holds more than archives."""
    named = [path for path in (place / pin.name, *sorted(place.glob(f"*/{pin.name}"))) if path.is_dir()]
    archives = [path for path in sorted(place.iterdir()) if path.is_file() and is_archive(path)]
    alike = [path for path in archives if path.name.startswith(f"{pin.name}.")]
    if not own:
        return [*named, *alike]
    if pin.tree:
        return [*named, *alike, place, *(path for path in archives if path not in alike)]
    only = archives if len(archives) == 1 else []
    more = any(path not in archives and not is_hidden(path.name) for path in place.iterdir())
    return [*named, *alike, *([place, *only] if more else [*only, place])]


def _held_somewhere(pin: TreePin, path: Path, reasons: list[str]) -> tuple[TreePin, Members] | None:
    """The tree at a path, or in a folder of it that has the name that a mirror knows it by."""
    refused: list[str] = []
    for name in dict.fromkeys(["", pin.name, *(str(mirror.get("folder", "")) for mirror in pin.mirrors)]):
        if held := _held(pin, path, str(path), name, refused):
            return held
    reasons += refused[:1]
    return None


def _held(pin: TreePin, path: Path, name: str, below: str, reasons: list[str]) -> tuple[TreePin, Members] | None:
    """The tree at a path, if it is the pinned one; else why not goes to `reasons`."""
    refused: list[str] = []
    try:
        files = _inner(members(path, name), below, pin)
        for view in _views(files):
            if pin.files is not None and len(view.names()) != pin.files:
                refused.append(f"{name} has {len(view.names()):,} files, not the {pin.files:,} of {pin.name}")
                continue
            hashes, count, size = tree_hashes(view)
            if not pin.tree or {pin.tree, pin.plain} & set(hashes):
                return pin.model_copy(update={"tree": pin.tree or hashes[0], "files": count}), files
            refused.append(f"{name} has {count:,} files ({size:,} bytes) of another tree hash ({hashes[0][:12]}..)")
    except BadData as error:
        refused.append(str(error))
    reasons.append(refused[-1])
    return None


def _views(files: Members) -> list[Members]:
    """What may have been pinned of a folder: all files, as git has them, or those that are data."""
    visible = files.visible()
    return [files] if visible is files else [files, visible]


def _inner(files: Members, below: str, pin: TreePin) -> Members:
    """The wanted folder of an archive. One outer folder that holds all (as GitHub's archives have it, and many others)
    does not count."""
    while True:
        tops = {name.partition("/")[0] for name in files.names()}
        if below and below.split("/")[0] in tops:
            return files.below(below)
        flat = any("/" not in name for name in files.names())
        if not below and any(len(view.names()) == pin.files for view in _views(files)):
            return files
        if len(tops) != 1 or flat:
            return files.below(below)
        files = files.below(tops.pop())
