"""The download size of a source, as far as its definition states sizes."""

from __future__ import annotations

from dataclasses import dataclass

from ...splits.manifest import FilePin
from ..mirrors import folder
from .fetch import get_file_path
from .source import Distribution, find_base_source, find_source
from .trees import has_local_tree


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
    known = find_source(source)
    distribution = known.definition.distributions[0]
    if distribution.generator or (known.definition.digest and known.cached_at.exists()):
        return DownloadSize()
    if distribution.of:
        return compute_download_size(find_base_source(distribution).name)
    return _add_up_files(distribution)


def _add_up_files(distribution: Distribution) -> DownloadSize:
    size, own = 0, 0
    unknown: list[str] = []
    local_sizes = folder.list_named_sizes() if distribution.files else set()
    for pin in distribution.files:
        if isinstance(pin, FilePin) and get_file_path(pin.sha256).exists():
            continue
        if pin.bytes is None:
            unknown += [pin.name] if pin.mirrors else []
        elif pin.mirrors and (
            not isinstance(pin, FilePin) or (pin.name.rpartition("/")[2], pin.bytes) not in local_sizes
        ):
            size += pin.bytes
        elif isinstance(pin, FilePin):
            own += pin.bytes
    for tree in distribution.trees:
        if tree.mirrors and not has_local_tree(tree):  # the user's own tree is read in place
            unknown.append(
                f"{tree.name}, a folder of {tree.files:,} files" if tree.files else f"the folder {tree.name}"
            )
    return DownloadSize(size, tuple(unknown), own)
