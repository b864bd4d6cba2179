"""PovertyMap as published by WILDS: `images/landsat_poverty_img_N.npz`, where N is the row of `dhs_metadata.csv`.

There are five folds of countries. Of a fold's other rows, two samples of 1,000 are for in-distribution validation and
test. They are drawn by NumPy's generator, seeded with the letter of the fold: the draw is part of the published split
and is reproduced exactly.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BadData, get_first_line
from ._layout import attach_files, get_archive, parse_floats, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa

_SEED = 541433
"""The constant that WILDS adds to every seed."""


def pieces(
    files: dict[str, Any],
    *,
    folds: dict[str, dict[str, list[str]]],
    id_rows: int,
    shape: list[int],
) -> Iterator[pa.Table]:
    """Fields: `image` (float32, of `shape`), `wealth`, `urban`, `country`, and for each of `folds` (its letter, and the
    countries of its `val` and `test`) a field `fold_a` .. with train, id_val, id_test (`id_rows` together), val or
    test."""
    archive = get_archive(files)
    table = read_member_columns(archive, "dhs_metadata.csv", ("country", "urban", "wealthpooled"))
    where = f"{archive.where}: dhs_metadata.csv"
    parts = {
        f"fold_{letter.lower()}": _assign_parts(table["country"], letter, fold, id_rows, where)
        for letter, fold in folds.items()
    }

    def convert_image(content: bytes, path: str) -> Any:
        return _load_pixels(content, f"{archive.where}: {path}", shape)

    rows = len(table["country"])
    tables = attach_files(
        archive,
        [f"images/landsat_poverty_img_{row}.npz" for row in range(rows)],
        {
            "wealth": parse_floats(table["wealthpooled"], f"{where}: wealthpooled"),
            "urban": ["urban" if value in ("True", "1", "1.0") else "rural" for value in table["urban"]],
            "country": table["country"],
            **parts,
        },
        convert=convert_image,
    )
    for image_table in tables:
        yield _convert_to_tensor(image_table, int(np.prod(shape)))


def _assign_parts(countries: Any, letter: str, fold: dict[str, list[str]], id_rows: int, where: str) -> Any:
    if absent := sorted({*fold["val"], *fold["test"]} - set(countries)):
        raise BadData(f"{where} has no row of {absent[0]}")
    part = np.full(len(countries), "train", dtype="U8")
    for name in ("val", "test"):
        part[np.isin(countries.astype(str), fold[name])] = name
    known = np.flatnonzero(part == "train")
    drawn = known.copy()
    np.random.default_rng(ord(letter) + _SEED).shuffle(drawn)
    part[drawn[: id_rows // 2]] = "id_val"
    part[drawn[id_rows // 2 : id_rows]] = "id_test"
    return part


def _load_pixels(content: bytes, where: str, shape: list[int]) -> Any:
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            pixels = arrays["x"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise BadData(f"{where} has no array 'x': {get_first_line(error)}") from error
    if list(pixels.shape) != shape:
        raise BadData(f"{where} has the shape {pixels.shape}, not {tuple(shape)}")
    return np.ascontiguousarray(pixels, np.float32).ravel()


def _convert_to_tensor(table: pa.Table, size: int) -> pa.Table:
    import pyarrow as pa

    flat = table["image"].combine_chunks().cast(pa.list_(pa.float32())).flatten()
    index = table.column_names.index("image")
    return table.set_column(index, "image", pa.FixedSizeListArray.from_arrays(flat, size))
