"""Food-101N, web images labelled by their search query (Lee et al. 2018, arXiv 1711.07131), and the test set of
Food-101."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles


def pieces(files: dict[str, Any], *, web: str, curated: str) -> Iterator[pa.Table]:
    """Fields: `image`, `food` (the index of its class in sorted order), `published` (train: the images in
    `imagelist.tsv` of the tree `web`; test: the images in `test.txt` of the tree `curated`) and `class_name`."""
    noisy, clean = get_archive(files, web), get_archive(files, curated)
    image_keys = {
        "train": [line.split("\t")[0] for line in _read_lines(noisy, "meta/imagelist.tsv")[1:]],
        "test": [f"{line}.jpg" for line in _read_lines(clean, "meta/test.txt")],
    }
    names = {part: [key.partition("/")[0] for key in keys] for part, keys in image_keys.items()}
    classes = sorted(set(names["train"]))
    if strange := sorted(set(names["test"]) - set(classes)):
        raise BadData(f"{clean.where}: meta/test.txt has the class {strange[0]}, which {noisy.where} does not have")
    places = {name: index for index, name in enumerate(classes)}
    for part, archive in (("train", noisy), ("test", clean)):
        yield from attach_files(
            archive,
            [f"images/{key}" for key in image_keys[part]],
            {
                "food": [places[name] for name in names[part]],
                "published": [part] * len(image_keys[part]),
                "class_name": names[part],
            },
        )


def _read_lines(archive: ArchiveFiles, name: str) -> list[str]:
    return [line.strip() for line in archive.read(name).decode("utf-8", "replace").splitlines() if line.strip()]
