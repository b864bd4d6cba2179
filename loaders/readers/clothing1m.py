"""Clothing1M: images in folders, lists of the keys of each part, and lists of labels (Xiao et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles

_PARTS = {
    "train": ("noisy_train_key_list.txt", "noisy_label_kv.txt"),
    "clean_train": ("clean_train_key_list.txt", "clean_label_kv.txt"),
    "val": ("clean_val_key_list.txt", "clean_label_kv.txt"),
    "test": ("clean_test_key_list.txt", "clean_label_kv.txt"),
}


def pieces(files: dict[str, Any]) -> Iterator[pa.Table]:
    """Fields: `image`, `clothing` (the label: noisy in training, clean elsewhere), `published` (train, clean_train,
    val, test) and `labels` ("noisy" or "clean")."""
    archive = get_archive(files)
    given = {name: _read_labels(archive, name) for name in ("noisy_label_kv.txt", "clean_label_kv.txt")}
    paths: list[str] = []
    fields: dict[str, list[Any]] = {"clothing": [], "published": [], "labels": []}
    for part, (keys, labels) in _PARTS.items():
        for key in _read_lines(archive, keys):
            if key not in given[labels]:
                raise BadData(f"{archive.where}: {labels} has no label of {key}, which is in {keys}")
            paths.append(key)
            fields["clothing"].append(given[labels][key])
            fields["published"].append(part)
            fields["labels"].append("noisy" if labels.startswith("noisy") else "clean")
    yield from attach_files(archive, paths, fields)


def _read_lines(archive: ArchiveFiles, name: str) -> list[str]:
    return [line.strip() for line in archive.read(name).decode("utf-8", "replace").splitlines() if line.strip()]


def _read_labels(archive: ArchiveFiles, name: str) -> dict[str, int]:
    labels = {}
    for line in _read_lines(archive, name):
        key, _, label = line.rpartition(" ")
        if not key or not label.isdigit():
            raise BadData(f"{archive.where}: {name}: {line!r} is not an image and a label")
        labels[key] = int(label)
    return labels
