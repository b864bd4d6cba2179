"""Fetch a folder of many files: the user's own copy if there is one, else an archive from a mirror.

Both are checked against the git tree hash of the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core.canonical import compute_identity
from ...core.errors import BadData, Unavailable
from ...core.files import compute_file_sha256, get_cache_root, hold_lock, is_offline, translate_os_errors
from ...core.progress import log_message
from ...splits.pins import TreePin
from .. import mirrors
from ..cache.store import is_intact, write_marker
from ..files.hidden import is_hidden
from ..mirrors import MirrorFailed, folder
from .archive_files import ArchiveFiles, is_archive, open_archive
from .git_tree import list_tree_hashes


def fetch_tree(pin: TreePin, own_folders: tuple[Path, ...] = ()) -> tuple[TreePin, ArchiveFiles]:
    """Return the files of a folder with exactly the pinned content, and the pin with its hash filled in if it had none.

    The user's own folder or archive is read in place; a mirror's archive is stored in the cache. Raises `Unavailable`
    with the reason for each place if none has it.
    """
    reasons: list[str] = []
    if tree := _find_own_copy(pin, own_folders, reasons):
        return tree
    for mirror in pin.mirrors:
        kind, name = mirrors.load_mirror(mirror, pin.name)
        path = get_cache_root() / "trees" / (pin.tree or compute_identity(mirror)[:40])
        if not is_intact(path):
            if kind.NETWORK and is_offline():
                reasons.append(f"{name}: not tried (offline)")
                continue
            with hold_lock(path), translate_os_errors(path):
                if not is_intact(path):
                    try:
                        _download_tree(kind, mirror, path)
                    except MirrorFailed as error:
                        reasons.append(f"{name}: {error}")
                        log_message(f"{name} failed: {error}")
                        continue
        if tree := _open_pinned_tree(pin, path, name, str(mirror.get("folder", "")), reasons):
            return tree
        path.unlink(missing_ok=True)
    hint = f"git tree {pin.tree[:12]}.." if pin.tree else "as it was published"
    raise Unavailable(
        f"{pin.name} is not available: {'; '.join(reasons) or 'it has no mirrors'}. "
        f"Put a copy ({hint}) in a folder, unpacked or as an archive, and give the folder by --data or FARSHIFT_MIRRORS"
    )


def has_local_copy(pin: TreePin) -> bool:
    """Whether a folder of `FARSHIFT_MIRRORS` has a folder or archive of the tree's name. Its content is not checked."""
    return bool(pin.tree) and any(_list_candidates(pin, location, False) for location in folder.list_folders())


def _download_tree(kind: Any, mirror: dict[str, Any], path: Path) -> None:
    partial = path.with_name(f"{path.name}.{compute_identity(mirror)[:8]}.part")
    kind.fetch(mirror, partial, None)
    partial.replace(path)
    write_marker(path, compute_file_sha256(path))


def _find_own_copy(
    pin: TreePin, own_folders: tuple[Path, ...], reasons: list[str]
) -> tuple[TreePin, ArchiveFiles] | None:
    """The folder itself, a folder of the pin's name in it, or an archive of either. A tree that is not pinned yet is
    read only from the folders that the user gives for this pull, never from `FARSHIFT_MIRRORS`."""
    tried: set[Path] = set()
    for location in folder.list_folders(own_folders) if pin.tree else own_folders:
        for path in _list_candidates(pin, location, location in own_folders):
            if path not in tried and (tree := _find_pinned_tree(pin, path, reasons)):
                return tree
            tried.add(path)
    return None


def _list_candidates(pin: TreePin, location: Path, own: bool) -> list[Path]:
    """Candidates for the tree in a folder, most likely first. Archives of other names are opened only in a folder that
    the user gives for this pull. If the tree is not pinned, an archive of another name is used only if it is the only
    one, and after the folder itself if that contains more than archives."""
    named = [path for path in (location / pin.name, *sorted(location.glob(f"*/{pin.name}"))) if path.is_dir()]
    archives = [path for path in sorted(location.iterdir()) if path.is_file() and is_archive(path)]
    named_archives = [path for path in archives if path.name.startswith(f"{pin.name}.")]
    if not own:
        return [*named, *named_archives]
    if pin.tree:
        return [*named, *named_archives, location, *(path for path in archives if path not in named_archives)]
    only_archive = archives if len(archives) == 1 else []
    has_other_files = any(path not in archives and not is_hidden(path.name) for path in location.iterdir())
    return [*named, *named_archives, *([location, *only_archive] if has_other_files else [*only_archive, location])]


def _find_pinned_tree(pin: TreePin, path: Path, reasons: list[str]) -> tuple[TreePin, ArchiveFiles] | None:
    """The tree at a path, or in its subfolder that has the name the mirror uses."""
    refused: list[str] = []
    for name in dict.fromkeys(["", pin.name, *(str(mirror.get("folder", "")) for mirror in pin.mirrors)]):
        if tree := _open_pinned_tree(pin, path, str(path), name, refused):
            return tree
    reasons += refused[:1]
    return None


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
    visible = files.visible()
    return [files] if visible is files else [files, visible]


def _find_inner_folder(files: ArchiveFiles, below: str, pin: TreePin) -> ArchiveFiles:
    """The wanted folder of an archive. A single top-level folder (as in GitHub's archives) is skipped."""
    while True:
        tops = {name.partition("/")[0] for name in files.names()}
        if below and below.split("/")[0] in tops:
            return files.subdir(below)
        flat = any("/" not in name for name in files.names())
        if not below and any(len(view.names()) == pin.files for view in _list_views(files)):
            return files
        if len(tops) != 1 or flat:
            return files.subdir(below)
        files = files.subdir(tops.pop())
