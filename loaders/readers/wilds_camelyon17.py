"""Camelyon17 as published by WILDS: patches of slides, and `metadata.csv`.

Its column `split` is used only for three hospitals: hospital 1 is always the validation part and hospital 2 the test
part (Koh et al. 2021, arXiv 2012.07421, appendix E.1; counted from 0, as in the data).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive, parse_integers, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa

_PATCH = "patches/patient_{0}_node_{1}/patch_patient_{0}_node_{1}_x_{2}_y_{3}.png"
_HOSPITALS = {"1": "val", "2": "test"}
_SPLIT = {"0": "train", "1": "id_val"}


def pieces(files: dict[str, Any]) -> Iterator[pa.Table]:
    """Fields: `image`, `tumour`, `published` (train, id_val, val or test), `hospital` and `slide`."""
    archive = get_archive(files)
    column_names = ("patient", "node", "x_coord", "y_coord", "tumor", "slide", "center", "split")
    table = read_member_columns(archive, "metadata.csv", column_names)
    published = []
    for row, (centre, split) in enumerate(zip(table["center"], table["split"], strict=True)):
        part = _HOSPITALS.get(centre) or _SPLIT.get(split)
        if part is None:
            raise BadData(f"{archive.where}: metadata.csv: row {row + 1} has split {split!r} in hospital {centre}")
        published.append(part)
    # The numbers of patients have leading zeros both in the names of the files and in the table.
    named = zip(*(table[name] for name in column_names[:4]), strict=True)
    yield from attach_files(
        archive,
        [_PATCH.format(*row) for row in named],
        {
            "tumour": parse_integers(table["tumor"], f"{archive.where}: metadata.csv: tumor"),
            "published": published,
            "hospital": table["center"],
            "slide": table["slide"],
        },
    )
