"""The download size of a source, as far as its definition states sizes."""

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
    """bytes: total of the files with a stated size. unknown: the other files. own: bytes of files in the user's local
    folders, which are copied to the cache."""

    bytes: int = 0
    unknown: tuple[str, ...] = ()
    own: int = 0


def compute_download_size(source: str) -> DownloadSize:
    """Return what the first distribution of a source has to fetch: nothing if its rows or files are cached, or if it is
    generated. A file without an address is the user's own. A file with an address counts as local if a folder of
    `FARSHIFT_MIRRORS` has one of the same name and size (its content is not checked here)."""
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
    # The user's own tree is read in place.
    unknown += [_describe_tree(tree) for tree in distribution.trees if tree.mirrors and not _is_local(tree)]
    return DownloadSize(size, tuple(unknown), own)


def _is_local(tree: TreePin) -> bool:
    names = [tree.tree or compute_identity(mirror)[:40] for mirror in tree.mirrors]
    return any((get_cache_root() / "trees" / name).exists() for name in names) or has_local_copy(tree)


def _describe_tree(tree: TreePin) -> str:
    return f"{tree.name}, a folder of {tree.files:,} files" if tree.files else f"the folder {tree.name}"
