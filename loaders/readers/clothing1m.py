"""Clothing1M: pictures in folders, lists of the keys of each part, and lists of labels (Xiao et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import whole, with_files

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.members import Members

_PARTS = {
    "train": ("noisy_train_key_list.txt", "noisy_label_kv.txt"),
    "clean_train": ("clean_train_key_list.txt", "clean_label_kv.txt"),
    "val": ("clean_val_key_list.txt", "clean_label_kv.txt"),
    "test": ("clean_test_key_list.txt", "clean_label_kv.txt"),
}


def pieces(files: dict[str, Any]) -> Iterator[pa.Table]:
    """`image`, `clothing` (the label: noisy in training, clean elsewhere), `published` (train, clean_train, val, test)
    and `labels` ("noisy" or "clean")."""
    held = whole(files)
    given = {name: _labels(held, name) for name in ("noisy_label_kv.txt", "clean_label_kv.txt")}
    paths: list[str] = []
    fields: dict[str, list[Any]] = {"clothing": [], "published": [], "labels": []}
    for part, (keys, labels) in _PARTS.items():
        for key in _lines(held, keys):
            if key not in given[labels]:
                raise BadData(f"{held.where}: {labels} has no label of {key}, which {keys} names")
            paths.append(key)
            fields["clothing"].append(given[labels][key])
            fields["published"].append(part)
            fields["labels"].append("noisy" if labels.startswith("noisy") else "clean")
    yield from with_files(held, paths, fields)


def _lines(held: Members, name: str) -> list[str]:
    return [line.strip() for line in held.read(name).decode("utf-8", "replace").splitlines() if line.strip()]


def _labels(held: Members, name: str) -> dict[str, int]:
    found = {}
    for line in _lines(held, name):
        key, _, label = line.rpartition(" ")
        if not key or not label.isdigit():
            raise BadData(f"{held.where}: {name}: {line!r} is no picture and label")
        found[key] = int(label)
    return found
