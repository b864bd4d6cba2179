"""GlobalWheat as published by WILDS: images under `images/`, and a table of boxes for each part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive, parse_integers, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa

_TABLES = {
    "train": "official_train.csv",
    "val": "official_val.csv",
    "test": "official_test.csv",
    "id_val": "fixed_train_val.csv",
    "id_test": "fixed_train_test.csv",
}
_NONE = "no_box"


def pieces(files: dict[str, Any], *, sessions: list[str]) -> Iterator[pa.Table]:
    """Fields: `image`, `boxes` ("x0 y0 x1 y1;..", in pixels; empty for none), `published` (train, val, test, id_val,
    id_test), `session`, `country`, `location` and `stage`. `sessions` are the names of the numbers in `domain`.

    An image of the training sessions that is for validation or test is both in `official_train.csv` and in one of the
    `fixed_train` tables; the latter determines its part.
    """
    archive = get_archive(files)
    column_names = ("name", "country", "location", "development_stage")
    known = read_member_columns(archive, "metadata_domain.csv", column_names, separator=";")
    about = {row[0]: row[1:] for row in zip(*(known[name] for name in column_names), strict=True)}
    rows: dict[str, dict[str, Any]] = {}
    for part, name in _TABLES.items():
        table = read_member_columns(archive, name, ("image_name", "BoxesString", "domain"))
        numbers = parse_integers(table["domain"], f"{archive.where}: {name}: domain")
        for image, boxes, number in zip(table["image_name"], table["BoxesString"], numbers, strict=True):
            if not 0 <= number < len(sessions) or sessions[number] not in about:
                raise BadData(f"{archive.where}: {name}: {image} has the unknown session {number}")
            country, location, stage = about[sessions[number]]
            before = rows.get(image)
            if before is not None and not (before["published"] == "train" and part.startswith("id_")):
                raise BadData(f"{archive.where}: {image} is in {before['published']} and in {part}")
            rows[image] = {
                "boxes": "" if boxes.strip() == _NONE else boxes.strip(),
                "published": part,
                "session": sessions[number],
                "country": country,
                "location": location,
                "stage": stage,
            }
    fields = {field: [row[field] for row in rows.values()] for field in next(iter(rows.values()), {})}
    yield from attach_files(archive, [f"images/{image}" for image in rows], fields)
