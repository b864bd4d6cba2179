"""How much a source has to download: known before it begins, as far as definitions state sizes."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.canonical import compute_identity
from ...core.files import get_cache_root
from ...splits.pins import FilePin, TreePin
from ..mirrors import folder
from .fetch_tree import has_local_copy
from .source import Distribution, find_base_source, find_source


@dataclass(frozen=True)
class DownloadSize:
    """bytes: of the files whose size is stated. unknown: of the others, what they are. own: bytes of files that lie in
    folders of the user's own, and are copied to the cache."""

    bytes: int = 0
    unknown: tuple[str, ...] = ()
    own: int = 0


def compute_download_size(source: str) -> DownloadSize:
    """What the first distribution of a source has to bring: nothing where its rows, or its files, are in the cache, or
    where they are generated. What has no address is the user's own; of what has one, a file of its name and size in a
    folder of `FARSHIFT_MIRRORS` is taken for it (what it holds is not looked at before it is read)."""
    known_source = find_source(source)
    if known_source.definition.digest and known_source.cached_at.exists():
        return DownloadSize()
    return _compute_distribution_size(known_source.definition.distributions[0])


def _compute_distribution_size(distribution: Distribution) -> DownloadSize:
    if distribution.generator:
        return DownloadSize()
    if distribution.of:
        return compute_download_size(find_base_source(distribution).name)
    size, own, unknown = 0, 0, []
    local_sizes = folder.list_named_sizes() if distribution.files else set()
    for pin in distribution.files:
        if isinstance(pin, FilePin):
            if (get_cache_root() / "files" / pin.sha256[:2] / pin.sha256).exists():
                continue
            if not pin.mirrors or (pin.name.rpartition("/")[2], pin.bytes) in local_sizes:
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
    unknown += [_describe_tree(tree) for tree in distribution.trees if tree.mirrors and not _is_local(tree)]
    return DownloadSize(size, tuple(unknown), own)


def _is_local(tree: TreePin) -> bool:
    names = [tree.tree or compute_identity(mirror)[:40] for mirror in tree.mirrors]
    return any((get_cache_root() / "trees" / name).exists() for name in names) or has_local_copy(tree)


def _describe_tree(tree: TreePin) -> str:
    return f"{tree.name}, a folder of {tree.files:,} files" if tree.files else f"the folder {tree.name}"
