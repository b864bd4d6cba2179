"""Published sets of images with lists of their labels, parts or groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ...core.documents import parse_json
from ..acquire.archive_files import ArchiveFiles
from ._layout import attach_files, get_archive, read_filled_lines

PUBLISHED_FORM = True


def camera_traps(
    files: dict[str, Any], *, pictures: str, annotations: str, locations: list[str], categories: list[str]
) -> Iterator[pa.Table]:
    """Camera-trap images with annotations in COCO format: some locations, some categories (Beery et al. 2018, arXiv
    1807.04975).

    Fields: `image`, `category` (its index in `categories`) and `domain` ("location_38"). There is a row for each image
    of one of the `locations` and each of the `categories` that it is annotated with. All JSON files of `annotations`
    are read; an image that is in several of them counts once.
    """
    image_archive, annotation_archive = get_archive(files, pictures), get_archive(files, annotations)
    places = {name: index for index, name in enumerate(categories)}
    location_of: dict[tuple[str, int], str] = {}
    for name in annotation_archive.names():
        if not name.endswith(".json"):
            continue
        document = parse_json(annotation_archive.read(name))
        kinds = {item["id"]: item["name"] for item in document["categories"]}
        images = {item["id"]: (item["file_name"], str(item["location"])) for item in document["images"]}
        for item in document["annotations"]:
            file, location = images.get(item["image_id"], ("", ""))
            if location in locations and (kind := kinds[item["category_id"]]) in places:
                location_of[file.rpartition("/")[2], places[kind]] = location
    inside = {path.rpartition("/")[2]: path for path in image_archive.names()}
    rows = sorted(location_of)
    yield from attach_files(
        image_archive,
        [inside[file] for file, _ in rows],
        {"category": [kind for _, kind in rows], "domain": [f"location_{location_of[row]}" for row in rows]},
    )


_CLOTHING_PARTS = {
    "train": ("noisy_train_key_list.txt", "noisy_label_kv.txt"),
    "clean_train": ("clean_train_key_list.txt", "clean_label_kv.txt"),
    "val": ("clean_val_key_list.txt", "clean_label_kv.txt"),
    "test": ("clean_test_key_list.txt", "clean_label_kv.txt"),
}


def clothing1m(files: dict[str, Any]) -> Iterator[pa.Table]:
    """Clothing1M: images in folders, lists of the keys of each part, and lists of labels (Xiao et al. 2015).

    Fields: `image`, `clothing` (the label: noisy in training, clean elsewhere), `published` (train, clean_train, val,
    test) and `labels` ("noisy" or "clean").
    """
    archive = get_archive(files)
    given: dict[str, dict[str, int]] = {"noisy_label_kv.txt": {}, "clean_label_kv.txt": {}}
    for name, labels in given.items():
        for line in read_filled_lines(archive, name):
            key, _, label = line.rpartition(" ")
            labels[key] = int(label)
    paths: list[str] = []
    fields: dict[str, list[Any]] = {"clothing": [], "published": [], "labels": []}
    for part, (keys, name) in _CLOTHING_PARTS.items():
        for key in read_filled_lines(archive, keys):
            paths.append(key)
            fields["clothing"].append(given[name][key])
            fields["published"].append(part)
            fields["labels"].append(name.partition("_")[0])
    yield from attach_files(archive, paths, fields)


_PLAIN = re.compile(r"([a-z]+)/(\1\d+)\.png")
_TEXTURED = re.compile(r"([a-z]+)/(\1\d+)-([a-z]+)\d+\.png")
"""Shape, photograph, and the texture of a file name."""


def cue_conflict(
    files: dict[str, Any], *, shapes: list[str], kinds: dict[str, str], textured: str
) -> Iterator[pa.Table]:
    """Images that combine the shape of one object with the texture of another (Geirhos et al. 2019, arXiv 1811.12231),
    and the same shapes as edges and silhouettes.

    Fields: `image`, `shape` (its index in `shapes`), `kind`, `texture` (or "none") and `photograph`.

    `kinds` maps the trees without texture (airplane/airplane1.png) to their kind; in the tree `textured`
    (airplane/airplane1-bear2.png) the kind is "cue conflict", or "no conflict" if shape and texture agree.
    """
    places = {name: index for index, name in enumerate(shapes)}
    for tree, kind in [*kinds.items(), (textured, "")]:
        archive = get_archive(files, tree)
        form = _PLAIN if kind else _TEXTURED
        paths = sorted(archive.names())
        fields: dict[str, list[Any]] = {"shape": [], "kind": [], "texture": [], "photograph": []}
        for path in paths:
            shape, photograph, *texture = form.fullmatch(path).groups()  # type: ignore[union-attr]
            fields["shape"].append(places[shape])
            fields["kind"].append(kind or ("no conflict" if texture == [shape] else "cue conflict"))
            fields["texture"].append("none" if kind else texture[0])
            fields["photograph"].append(photograph)
        yield from attach_files(archive, paths, fields)


def food101n(files: dict[str, Any], *, web: str, curated: str) -> Iterator[pa.Table]:
    """Food-101N, web images labelled by their search query (Lee et al. 2018, arXiv 1711.07131), and the test set of
    Food-101.

    Fields: `image`, `food` (the index of its class in sorted order), `published` (train: the images in `imagelist.tsv`
    of the tree `web`; test: the images in `test.txt` of the tree `curated`) and `class_name`.
    """
    noisy, clean = get_archive(files, web), get_archive(files, curated)
    image_keys = {
        "train": [line.split("\t")[0] for line in read_filled_lines(noisy, "meta/imagelist.tsv")[1:]],
        "test": [f"{line}.jpg" for line in read_filled_lines(clean, "meta/test.txt")],
    }
    names = {part: [key.partition("/")[0] for key in keys] for part, keys in image_keys.items()}
    places = {name: index for index, name in enumerate(sorted(set(names["train"])))}
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


def objectnet(files: dict[str, Any], *, train: str, val: str, objectnet: str) -> Iterator[pa.Table]:
    """ImageNet and ObjectNet, restricted to the object classes of both (Barbu et al. 2019, ObjectNet, NeurIPS).

    Fields: `image`, `thing` (the index of ObjectNet's label in the sorted labels that ImageNet has too), `published`
    (train, val: ImageNet's images of the classes of that label; test: ObjectNet's images) and `folder` (a synset, or
    ObjectNet's folder).

    The trees `train` and `val` have a folder for each synset; `objectnet` has `images` and `mappings`, whose four files
    map labels to classes of ImageNet (in the order of the synsets).
    """
    tested, taught = get_archive(files, objectnet), {part: get_archive(files, part) for part in (train, val)}
    synsets = sorted({name.partition("/")[0] for name in taught[train].names() if "/" in name})
    things, of_folder = _map_things(tested, synsets)
    for part, archive in (("train", taught[train]), ("val", taught[val])):
        yield from _iterate_things(archive, "", things, part)
    yield from _iterate_things(tested, "images/", of_folder, "test")


def _iterate_things(archive: ArchiveFiles, head: str, things: dict[str, int], part: str) -> Iterator[pa.Table]:
    """Yield the images in the folders of the shared object classes."""
    paths = [name for name in sorted(archive.names()) if name.startswith(head) and "/" in name[len(head) :]]
    candidates = [(name, name[len(head) :].partition("/")[0]) for name in paths]
    images = [(name, folder) for name, folder in candidates if folder in things]
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
    label_of, classes_of, line_of = (
        parse_json(archive.read(f"mappings/{name}.json"), dict, f"{archive.where}: mappings/{name}.json")
        for name in ("folder_to_objectnet_label", "objectnet_to_imagenet_1k", "pytorch_to_imagenet_2012_id")
    )
    lines = archive.read("mappings/imagenet_to_label_2012_v2").decode("utf-8").splitlines()
    synset_of = {lines[int(line)].strip(): synsets[int(index)] for index, line in line_of.items()}
    number = {label: index for index, label in enumerate(sorted(classes_of))}
    by_synset = {synset_of[name]: number[label] for label, names in classes_of.items() for name in names.split("; ")}
    return by_synset, {folder: number[label] for folder, label in label_of.items() if label in number}


def webvision(files: dict[str, Any], *, train: str, val: str, info: str, classes: int) -> Iterator[pa.Table]:
    """WebVision 1.0: images that Google found for the names of ImageNet's classes, and checked images for validation
    (Li et al. 2017, arXiv 1708.02862).

    Fields: `image`, `category` and `published` (train, val), for the images that `train_filelist_google.txt` and
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
        rows = [row for row in _read_image_list(lists, name, depth) if row[1] < classes]
        path_of = {"/".join(path.split("/")[-depth:]): path for path in archive.names()}
        fields = {"category": [number for _, number in rows], "published": [part] * len(rows)}
        yield from attach_files(archive, [path_of[path] for path, _ in rows], fields)


def _read_image_list(archive: ArchiveFiles, name: str, depth: int) -> list[tuple[str, int]]:
    """Read the last `depth` steps of the path and the number in each line of a list."""
    (file,) = (path for path in archive.names() if path.rpartition("/")[2] == name)
    rows = []
    for line in read_filled_lines(archive, file):
        path, _, category = line.rpartition(" ")
        rows.append(("/".join(path.split("/")[-depth:]), int(category)))
    return rows
