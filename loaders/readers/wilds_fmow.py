"""FMoW as published by WILDS: `images/rgb_img_N.png`, where N is the index of the row in `rgb_metadata.csv`.

The official split (`time_after_2016`): the test part is the original test from 2016 on, the validation part is the
original validation from 2013 to 2015, and older rows are in-distribution; newer rows of the other original parts, and
sequestered rows (`seq`), are in no part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa

_VALIDATION, _TEST = 2013, 2016
_OLDER = {"train": "train", "val": "id_val", "test": "id_test"}


def pieces(files: dict[str, Any], *, uses: list[str]) -> Iterator[pa.Table]:
    """Fields: `image`, `use` (the index of the category in `uses`), `published` (train, id_val, id_test, val, test, or
    "unused"), `region`, `country` and `year`."""
    archive = get_archive(files)
    table = read_member_columns(archive, "rgb_metadata.csv", ("split", "timestamp", "country_code", "category"))
    mapping = read_member_columns(archive, "country_code_mapping.csv", ("alpha-3", "region"))
    regions = dict(zip(mapping["alpha-3"], mapping["region"], strict=True))
    places = {use: index for index, use in enumerate(uses)}
    if unknown := sorted(set(table["category"]) - places.keys()):
        raise BadData(f"{archive.where}: rgb_metadata.csv has the unknown category {unknown[0]!r}")
    years = [_parse_year(text, f"{archive.where}: rgb_metadata.csv") for text in table["timestamp"]]
    image_rows = [row for row, split in enumerate(table["split"]) if split != "seq"]
    yield from attach_files(
        archive,
        [f"images/rgb_img_{row}.png" for row in image_rows],
        {
            "use": [places[table["category"][row]] for row in image_rows],
            "published": [_name_part(table["split"][row], years[row]) for row in image_rows],
            "region": [regions.get(table["country_code"][row], "Other") for row in image_rows],
            "country": [table["country_code"][row] for row in image_rows],
            "year": [str(years[row]) for row in image_rows],
        },
    )


def _name_part(split: str, year: int) -> str:
    if year < _VALIDATION:
        return _OLDER[split]
    if year < _TEST:
        return "val" if split == "val" else "unused"
    return "test" if split == "test" else "unused"


def _parse_year(text: str, where: str) -> int:
    year = text[:4]
    if not year.isdigit():
        raise BadData(f"{where}: {text!r} is not a time")
    return int(year)  # times are in UTC
