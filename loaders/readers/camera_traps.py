"""Pictures of camera traps with annotations in the form of COCO: some locations, some categories (Beery et al. 2018,
arXiv 1807.04975)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import whole, with_files

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.members import Members


def pieces(
    files: dict[str, Any], *, pictures: str, annotations: str, locations: list[str], categories: list[str]
) -> Iterator[pa.Table]:
    """`image`, `category` (the place in `categories`) and `domain` ("location_38") of each picture of one of the
    `locations`, as often as it is annotated with other ones of the `categories`. All JSON files of `annotations` are
    read; a picture that several of them know is one."""
    held, said = whole(files, pictures), whole(files, annotations)
    places = {name: place for place, name in enumerate(categories)}
    found: dict[tuple[str, int], str] = {}
    for name in said.names():
        if name.endswith(".json"):
            _read(said, name, set(locations), places, found)
    inside = {path.rpartition("/")[2]: path for path in held.names()}
    if absent := sorted({file for file, _ in found} - inside.keys()):
        raise BadData(f"{held.where} has no picture {absent[0]} ({len(absent):,} are missing)")
    rows = sorted(found)
    yield from with_files(
        held,
        [inside[file] for file, _ in rows],
        {"category": [kind for _, kind in rows], "domain": [f"location_{found[row]}" for row in rows]},
    )


def _read(
    held: Members, name: str, locations: set[str], places: dict[str, int], found: dict[tuple[str, int], str]
) -> None:
    try:
        said = json.loads(held.read(name))
        kinds = {item["id"]: item["name"] for item in said["categories"]}
        images = {
            item["id"]: (item["file_name"].rpartition("/")[2], str(item["location"]))
            for item in said["images"]
            if str(item["location"]) in locations
        }
        for item in said["annotations"]:
            if item["image_id"] in images and kinds[item["category_id"]] in places:
                file, location = images[item["image_id"]]
                found[(file, places[kinds[item["category_id"]]])] = location
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{held.where}: {name} is no list of images, annotations and categories: {error!r}") from error
