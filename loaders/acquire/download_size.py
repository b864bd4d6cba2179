"""How much a source has to download: known before it begins, as far as definitions state sizes."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.canonical import identity_of
from ...core.files import cache_root
from ...splits.pins import FilePin, TreePin
from .source import Distribution, base_of, find_source


@dataclass(frozen=True)
class DownloadSize:
    """bytes: of the files whose size is stated. unknown: of the others, what they are."""

    bytes: int = 0
    unknown: tuple[str, ...] = ()


def download_size(source: str) -> DownloadSize:
    """What the first distribution of a source has to bring: nothing where its rows, or its files, are in the cache, or
    where they are generated. Folders of one's own are not looked into: what they hold is copied to the cache too."""
    found = find_source(source)
    if found.definition.digest and found.cached_at.exists():
        return DownloadSize()
    return _of(found.definition.distributions[0])


def _of(distribution: Distribution) -> DownloadSize:
    if distribution.generator:
        return DownloadSize()
    if distribution.of:
        return download_size(base_of(distribution).name)
    size, unknown = 0, []
    for pin in distribution.files:
        if isinstance(pin, FilePin):
            path = cache_root() / "files" / pin.sha256[:2] / pin.sha256
            size += 0 if path.exists() else pin.bytes
        elif pin.bytes is None:
            unknown.append(pin.name)
        else:
            size += pin.bytes
    unknown += [_told(tree) for tree in distribution.trees if not _is_cached(tree)]
    return DownloadSize(size, tuple(unknown))


def _is_cached(tree: TreePin) -> bool:
    names = [tree.tree or identity_of(mirror)[:40] for mirror in tree.mirrors]
    return any((cache_root() / "trees" / name).exists() for name in names)


def _told(tree: TreePin) -> str:
    return f"{tree.name}, a folder of {tree.files:,} files" if tree.files else f"the folder {tree.name}"
