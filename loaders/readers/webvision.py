"""WebVision 1.0: images that Google found for the names of ImageNet's classes, and checked images for validation (Li
et al. 2017, arXiv 1708.02862)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles


def pieces(files: dict[str, Any], *, train: str, val: str, info: str, classes: int) -> Iterator[pa.Table]:
    """Fields: `image`, `category` and `published` (train, val), for the images that `train_filelist_google.txt` and
    `val_filelist.txt` of the tree `info` list with one of the first `classes` numbers.

    Images are found by the end of their path (q0001/NAME.jpg, for validation NAME.jpg), since they may be unpacked into
    different folders.
    """
    lists = get_archive(files, info)
    for part, tree, name, depth in (
        ("train", train, "train_filelist_google.txt", 2),
        ("val", val, "val_filelist.txt", 1),
    ):
        archive = get_archive(files, tree)
        rows = [row for row in _read_rows(lists, name) if row[1] < classes]
        path_of = {_get_path_end(path, depth): path for path in archive.names()}
        if absent := sorted({path for path, _ in rows if _get_path_end(path, depth) not in path_of}):
            raise BadData(f"{archive.where} has no image {absent[0]} ({len(absent):,} of {len(rows):,} are missing)")
        yield from attach_files(
            archive,
            [path_of[_get_path_end(path, depth)] for path, _ in rows],
            {"category": [number for _, number in rows], "published": [part] * len(rows)},
        )


def _read_rows(archive: ArchiveFiles, name: str) -> list[tuple[str, int]]:
    """Read the path and the number in each line of a list."""
    fit = [path for path in archive.names() if path.rpartition("/")[2] == name]
    if len(fit) != 1:
        raise BadData(f"{archive.where} has {len(fit)} lists named {name}, not one")
    rows = []
    for number, line in enumerate(archive.read(fit[0]).decode("utf-8", "replace").splitlines(), 1):
        path, _, category = line.strip().rpartition(" ")
        if not path or not category.isdecimal():
            raise BadData(f"{archive.where}: {name}, line {number} is not a path and a number: {line[:60]!r}")
        rows.append((path, int(category)))
    return rows


def _get_path_end(path: str, depth: int) -> str:
    return "/".join(path.split("/")[-depth:])
