"""ImageNet and ObjectNet, restricted to the object classes of both (Barbu et al. 2019, ObjectNet, NeurIPS)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles


def pieces(files: dict[str, Any], *, train: str, val: str, objectnet: str) -> Iterator[pa.Table]:
    """Fields: `image`, `thing` (the index of ObjectNet's label in the sorted labels that ImageNet has too), `published`
    (train, val: ImageNet's images of the classes of that label; test: ObjectNet's images) and `folder` (a synset, or
    ObjectNet's folder).

    The trees `train` and `val` have a folder for each synset; `objectnet` has `images` and `mappings`, whose four files
    map labels to classes of ImageNet (in the order of the synsets).
    """
    tested, taught = get_archive(files, objectnet), {part: get_archive(files, part) for part in (train, val)}
    synsets = sorted({name.partition("/")[0] for name in taught[train].names() if "/" in name})
    things, of_folder = _map_things(tested, synsets)
    for part, archive in (("train", taught[train]), ("val", taught[val])):
        yield from _iterate_rows(archive, "", things, part)
    yield from _iterate_rows(tested, "images/", of_folder, "test")


def _iterate_rows(archive: ArchiveFiles, head: str, things: dict[str, int], part: str) -> Iterator[pa.Table]:
    """Yield the images in the folders of the shared object classes."""
    paths = [name for name in sorted(archive.names()) if name.startswith(head) and "/" in name[len(head) :]]
    candidates = [(name, name[len(head) :].partition("/")[0]) for name in paths]
    images = [(name, folder) for name, folder in candidates if folder in things]
    if not images:
        raise BadData(f"{archive.where} has no image of an object class of both ImageNet and ObjectNet")
    yield from attach_files(
        archive,
        [name for name, _ in images],
        {
            "thing": [things[folder] for _, folder in images],
            "published": [part] * len(images),
            "folder": [folder for _, folder in images],
        },
    )


def _map_things(archive: ArchiveFiles, synsets: list[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the index of the object class by synset, and by ObjectNet's folder."""
    label_of = _read_json(archive, "folder_to_objectnet_label.json")
    classes_of = _read_json(archive, "objectnet_to_imagenet_1k.json")
    line_of = _read_json(archive, "pytorch_to_imagenet_2012_id.json")
    lines = archive.read("mappings/imagenet_to_label_2012_v2").decode("utf-8").splitlines()
    try:
        synset_of = {lines[int(line)].strip(): synsets[int(index)] for index, line in line_of.items()}
        number = {label: index for index, label in enumerate(sorted(classes_of))}
        by_synset = {
            synset_of[name]: number[label] for label, names in classes_of.items() for name in names.split("; ")
        }
        by_folder = {folder: number[label] for folder, label in label_of.items() if label in number}
    except (KeyError, IndexError, ValueError, AttributeError, TypeError) as error:
        raise BadData(f"{archive.where}: its mappings have a class without a folder in ImageNet: {error!r}") from error
    return by_synset, by_folder


def _read_json(archive: ArchiveFiles, name: str) -> dict[str, Any]:
    try:
        document = json.loads(archive.read(f"mappings/{name}"))
    except ValueError as error:
        raise BadData(f"{archive.where}: mappings/{name} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadData(f"{archive.where}: mappings/{name} is not a JSON object")
    return document
