"""Camera-trap images with annotations in COCO format: some locations, some categories (Beery et al. 2018,
arXiv 1807.04975)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles


def pieces(
    files: dict[str, Any], *, pictures: str, annotations: str, locations: list[str], categories: list[str]
) -> Iterator[pa.Table]:
    """Fields: `image`, `category` (its index in `categories`) and `domain` ("location_38"). There is a row for each
    image of one of the `locations` and each of the `categories` that it is annotated with. All JSON files of
    `annotations` are read; an image that is in several of them counts once."""
    image_archive, annotation_archive = get_archive(files, pictures), get_archive(files, annotations)
    places = {name: index for index, name in enumerate(categories)}
    location_of: dict[tuple[str, int], str] = {}
    for name in annotation_archive.names():
        if name.endswith(".json"):
            _read_annotations(annotation_archive, name, set(locations), places, location_of)
    inside = {path.rpartition("/")[2]: path for path in image_archive.names()}
    if absent := sorted({file for file, _ in location_of} - inside.keys()):
        raise BadData(f"{image_archive.where} has no image {absent[0]} ({len(absent):,} are missing)")
    rows = sorted(location_of)
    yield from attach_files(
        image_archive,
        [inside[file] for file, _ in rows],
        {"category": [kind for _, kind in rows], "domain": [f"location_{location_of[row]}" for row in rows]},
    )


def _read_annotations(
    archive: ArchiveFiles,
    name: str,
    locations: set[str],
    places: dict[str, int],
    location_of: dict[tuple[str, int], str],
) -> None:
    try:
        document = json.loads(archive.read(name))
        kinds = {item["id"]: item["name"] for item in document["categories"]}
        images = {
            item["id"]: (item["file_name"].rpartition("/")[2], str(item["location"]))
            for item in document["images"]
            if str(item["location"]) in locations
        }
        for item in document["annotations"]:
            if item["image_id"] in images and kinds[item["category_id"]] in places:
                file, location = images[item["image_id"]]
                location_of[(file, places[kinds[item["category_id"]]])] = location
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{archive.where}: {name} does not list images, annotations and categories: {error!r}") from error
