"""The data sets of WILDS as published (Koh et al. 2021, arXiv 2012.07421): a folder or archive with tables, and
the files that they name."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ...core.documents import parse_json
from ...core.errors import BadData
from ._layout import attach_files, get_archive, read_columns, to_floats

PUBLISHED_FORM = True

IDENTITIES = ("male", "female", "LGBTQ", "christian", "muslim", "other_religions", "black", "white")


def civilcomments(files: dict[str, Any]) -> pa.Table:
    """CivilComments: `all_data_with_identities.csv`, where every number is a share of annotators
    and counts as 1 if it is at least one half.

    Fields: `comment`, `toxic`, `published` (train, val or test), a field 0 or 1 for each identity, in lower case, and
    `identity`: the first identity that the comment mentions, or "none".
    """
    archive = get_archive(files)
    shares = ("toxicity", *IDENTITIES)
    table = read_columns(archive, "all_data_with_identities.csv", "comment_text", "split", *shares)
    toxic, *columns = [(to_floats(table[name]) >= 0.5).astype(np.int64) for name in shares]
    named = np.stack(columns, axis=1)
    first = np.where(named.any(axis=1), named.argmax(axis=1), len(IDENTITIES))
    return pa.table(
        {
            "comment": table["comment_text"],
            "toxic": toxic,
            "published": table["split"],
            "identity": [(*IDENTITIES, "none")[index].lower() for index in first],
            **{name.lower(): column for name, column in zip(IDENTITIES, columns, strict=True)},
        }
    )


_VALIDATION, _TEST = 2013, 2016
_OLDER = {"train": "train", "val": "id_val", "test": "id_test"}


def fmow(files: dict[str, Any], *, uses: list[str]) -> Iterator[pa.Table]:
    """FMoW: `images/rgb_img_N.png`, where N is the index of the row in `rgb_metadata.csv`.

    The official split (`time_after_2016`): the test part is the original test from 2016 on, the validation part is the
    original validation from 2013 to 2015, and older rows are in-distribution; newer rows of the other original parts,
    and sequestered rows (`seq`), are in no part.

    Fields: `image`, `use` (the index of the category in `uses`), `published` (train, id_val, id_test, val, test, or
    "unused"), `region`, `country` and `year`.
    """
    archive = get_archive(files)
    table = read_columns(archive, "rgb_metadata.csv", "split", "timestamp", "country_code", "category")
    named = read_columns(archive, "country_code_mapping.csv", "alpha-3", "region")
    regions = dict(zip(named["alpha-3"], named["region"], strict=True))
    places = {use: index for index, use in enumerate(uses)}
    paths: list[str] = []
    fields: dict[str, list[Any]] = {name: [] for name in ("use", "published", "region", "country", "year")}
    for row, (split, time, country, category) in enumerate(zip(*table.values(), strict=True)):
        if split == "seq":
            continue
        year = int(time[:4])  # times are in UTC
        paths.append(f"images/rgb_img_{row}.png")
        fields["use"].append(places[category])
        fields["published"].append(_name_part(split, year))
        fields["region"].append(regions.get(country, "Other"))
        fields["country"].append(country)
        fields["year"].append(str(year))
    yield from attach_files(archive, paths, fields)


def _name_part(split: str, year: int) -> str:
    if year < _VALIDATION:
        return _OLDER[split]
    part = "val" if year < _TEST else "test"
    return part if split == part else "unused"


_WHEAT_TABLES = {
    "train": "official_train.csv",
    "val": "official_val.csv",
    "test": "official_test.csv",
    "id_val": "fixed_train_val.csv",
    "id_test": "fixed_train_test.csv",
}


def globalwheat(files: dict[str, Any], *, sessions: list[str]) -> Iterator[pa.Table]:
    """GlobalWheat: images under `images/`, and a table of boxes for each part.

    Fields: `image`, `boxes` ("x0 y0 x1 y1;..", in pixels; empty for none), `published` (train, val, test, id_val,
    id_test), `session`, `country`, `location` and `stage`. `sessions` are the names of the numbers in `domain`.

    An image of the training sessions that is for validation or test is both in `official_train.csv` and in one of the
    `fixed_train` tables; the latter determines its part.
    """
    archive = get_archive(files)
    columns = ("name", "country", "location", "development_stage")
    table = read_columns(archive, "metadata_domain.csv", *columns, separator=";")
    about = {name: rest for name, *rest in zip(*table.values(), strict=True)}
    rows: dict[str, dict[str, Any]] = {}
    for part, name in _WHEAT_TABLES.items():
        table = read_columns(archive, name, "image_name", "BoxesString", "domain")
        for image, boxes, number in zip(*table.values(), strict=True):
            session = sessions[int(float(number))]
            country, location, stage = about[session]
            before = rows.get(image)
            if before is not None and not (before["published"] == "train" and part.startswith("id_")):
                raise BadData(f"{archive.where}: {image} is in {before['published']} and in {part}")
            rows[image] = {
                "boxes": "" if boxes.strip() == "no_box" else boxes.strip(),
                "published": part,
                "session": session,
                "country": country,
                "location": location,
                "stage": stage,
            }
    fields = {field: [row[field] for row in rows.values()] for field in next(iter(rows.values()), {})}
    yield from attach_files(archive, [f"images/{image}" for image in rows], fields)


_SEED = 541433
"""The constant that WILDS adds to every seed."""


def poverty(
    files: dict[str, Any],
    *,
    folds: dict[str, dict[str, list[str]]],
    id_rows: int,
    shape: list[int],
) -> Iterator[pa.Table]:
    """PovertyMap: `images/landsat_poverty_img_N.npz`, where N is the row of `dhs_metadata.csv`.

    There are five folds of countries. Of a fold's other rows, two samples of 1,000 are for in-distribution validation
    and test. They are drawn by NumPy's generator, seeded with the letter of the fold: the draw is part of the published
    split and is reproduced exactly.

    Fields: `image` (float32, of `shape`), `wealth`, `urban`, `country`, and for each of `folds` (its letter, and the
    countries of its `val` and `test`) a field `fold_a` .. with train, id_val, id_test (`id_rows` together), val or
    test.
    """
    archive = get_archive(files)
    table = read_columns(archive, "dhs_metadata.csv", "country", "urban", "wealthpooled")
    countries = table["country"]
    parts = {f"fold_{name.lower()}": _assign_parts(countries, name, fold, id_rows) for name, fold in folds.items()}

    def read_pixels(content: bytes, path: str) -> Any:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return np.ascontiguousarray(arrays["x"], np.float32).reshape(shape)

    yield from attach_files(
        archive,
        [f"images/landsat_poverty_img_{row}.npz" for row in range(len(table["country"]))],
        {
            "wealth": to_floats(table["wealthpooled"]),
            "urban": ["urban" if value in ("True", "1", "1.0") else "rural" for value in table["urban"]],
            "country": countries,
            **parts,
        },
        convert=read_pixels,
    )


def _assign_parts(countries: list[str], letter: str, fold: dict[str, list[str]], id_rows: int) -> Any:
    part = np.full(len(countries), "train", dtype="U8")
    for name in ("val", "test"):
        part[np.isin(countries, fold[name])] = name
    drawn = np.flatnonzero(part == "train")
    np.random.default_rng(ord(letter) + _SEED).shuffle(drawn)
    part[drawn[: id_rows // 2]] = "id_val"
    part[drawn[id_rows // 2 : id_rows]] = "id_test"
    return part


_CODE_PARTS = {"train": "train", "IDval": "id_val", "OODval": "val", "IDtest": "id_test", "OODtest": "test"}
TYPES = ("class", "method", "punctuation", "keyword", "builtin", "literal", "other_identifier")
MASKED = -100
"""The type of padding, which is not predicted."""
_NAMES = {**dict(enumerate(TYPES)), MASKED: "masked"}


def py150(files: dict[str, Any]) -> pa.Table:
    """Py150: tokens of Python files as numbers, and the type of each token.

    Fields: `code` (tokens as numbers, all but the last), `next_token` (all but the first), and `types`, the types
    (`TYPES`) of the tokens in `next_token`, each a text separated by spaces; `published` (train, id_val, val, id_test,
    test) and `repository`.

    Padding at the end is left out.
    """
    archive = get_archive(files)
    rows: dict[str, list[str]] = {name: [] for name in ("code", "next_token", "types", "published", "repository")}
    for name, part in _CODE_PARTS.items():
        tokens, types = (
            parse_json(archive.read(f"processed/{name}_input{end}.json"), list) for end in ("", "_tok_type")
        )
        paths = archive.read(f"metadata/repo_file_names/{name}.txt").decode().removesuffix("\n").split("\n")
        for its, kinds, path in zip(tokens, types, paths, strict=True):
            pairs = list(zip(its, kinds, strict=True))
            while len(pairs) > 1 and pairs[-1][1] == MASKED:
                pairs.pop()
            rows["code"].append(" ".join(str(token) for token, _ in pairs[:-1]))
            rows["next_token"].append(" ".join(str(token) for token, _ in pairs[1:]))
            rows["types"].append(" ".join(_NAMES[kind] for _, kind in pairs[1:]))
            rows["published"].append(part)
            rows["repository"].append("/".join(path.split("/")[:2]))
    return pa.table(rows)
