"""How much a source has to download: known before it begins, as far as definitions state sizes."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.canonical import identity_of
from ...core.files import cache_root
from ...splits.pins import FilePin, TreePin
from ..mirrors import folder
from .fetch_tree import at_hand
from .source import Distribution, base_of, find_source


@dataclass(frozen=True)
class DownloadSize:
    """bytes: of the files whose size is stated. unknown: of the others, what they are. own: bytes of files that lie in
    folders of the user's own, and are copied to the cache."""

    bytes: int = 0
    unknown: tuple[str, ...] = ()
    own: int = 0


def download_size(source: str) -> DownloadSize:
    """What the first distribution of a source has to bring: nothing where its rows, or its files, are in the cache, or
    where they are generated. What has no address is the user's own; of what has one, a file of its name and size in a
    folder of `FARSHIFT_MIRRORS` is taken for it (what it holds is not looked at before it is read)."""
    found = find_source(source)
    if found.definition.digest and found.cached_at.exists():
        return DownloadSize()
    return _of(found.definition.distributions[0])


def _of(distribution: Distribution) -> DownloadSize:
    if distribution.generator:
        return DownloadSize()
    if distribution.of:
        return download_size(base_of(distribution).name)
    size, own, unknown = 0, 0, []
    here = folder.named_sizes() if distribution.files else set()
    for pin in distribution.files:
        if isinstance(pin, FilePin):
            if (cache_root() / "files" / pin.sha256[:2] / pin.sha256).exists():
                continue
            if not pin.mirrors or (pin.name.rpartition("/")[2], pin.bytes) in here:
                own += pin.bytes
            else:
                size += pin.bytes
        elif not pin.mirrors:
            continue
        elif pin.bytes is None:
            unknown.append(pin.name)
        else:
            size += pin.bytes
    # A tree of the user's own is read where it lies.
    unknown += [_told(tree) for tree in distribution.trees if tree.mirrors and not _is_here(tree)]
    return DownloadSize(size, tuple(unknown), own)


def _is_here(tree: TreePin) -> bool:
    names = [tree.tree or identity_of(mirror)[:40] for mirror in tree.mirrors]
    return any((cache_root() / "trees" / name).exists() for name in names) or at_hand(tree)


def _told(tree: TreePin) -> str:
    return f"{tree.name}, a folder of {tree.files:,} files" if tree.files else f"the folder {tree.name}"
