"""Images under the common corruptions (Hendrycks and Dietterich 2019, arXiv 1903.12261), each test image under one
of them at one severity, or under all.

Corrupted images are ordinary rows, with ids and digests of the corrupted pixels. The corruptions are exact
(`loaders/corruptions/`), so the bytes are the same everywhere, and streams, exports and devices need no special
support.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ...splits.schema import Field, Schema
from ..batching.images import decode_images
from ..corrupt import SEVERITIES, corrupt
from ..readers._arrow_types import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa

CLEAN = "none"


def rows(
    base: pa.Table,
    schema: Schema,
    *,
    image: str,
    test: str | int,
    validation: int,
    corruptions: list[str],
    validation_corruptions: list[str],
    seed: str,
    published: str = "",
    train: str = "",
    every: bool = False,
    share: dict[str, int] | None = None,
) -> pa.Table:
    """Return the fields of `schema`: those of `base`; `published` (train, validation or test); `corruption` (a name, or
    none) and `level` (its severity, or 0).

    Test rows are those whose field `published` is `test`, training rows those where it is `train`; without such a field
    `test` is a number of rows, drawn by `seed`. Training rows are clean, except `validation` of them, also drawn.
    Validation and test rows occur both clean and corrupted (by `validation_corruptions` or `corruptions`): once, at a
    severity of 1 to 5, assigned by row id so that each corruption and severity gets equally many rows; or with `every`
    under each corruption at each severity. Random numbers of a corruption are drawn by the row id in `base`. `share`
    limits the numbers of rows (train, test), drawn.
    """
    import pyarrow as pa

    ids = base["row_id"].to_numpy()
    if isinstance(test, str):
        origin = np.asarray(base[published].to_pylist())
        trains, tests = np.flatnonzero(origin == train), np.flatnonzero(origin == test)
    else:
        order = draw_permutation(f"{seed}/test", ids)
        trains, tests = order[test:], order[:test]
    if share:
        trains, tests = (
            _draw_share(places, share, part, ids, f"{seed}/share")
            for part, places in (("train", trains), ("test", tests))
        )
        used = np.sort(np.concatenate([trains, tests]))
        base, ids = base.take(used), ids[used]  # only these are decoded
        trains, tests = np.searchsorted(used, trains), np.searchsorted(used, tests)
    if not len(trains) or not len(tests) or not 0 <= validation < len(trains):
        raise BadDefinition(
            f"{len(trains)} training rows, {len(tests)} test rows, and {validation} of the training rows for "
            "validation: each part needs at least one row"
        )
    validates = trains[draw_permutation(f"{seed}/validation", ids[trains])[:validation]]
    stays = np.setdiff1d(trains, validates)
    blocks = [(stays, "train", CLEAN, 0), (validates, "validation", CLEAN, 0), (tests, "test", CLEAN, 0)]
    for places, part, names in ((validates, "validation", validation_corruptions), (tests, "test", corruptions)):
        cells = list(product(names, SEVERITIES))
        dealt = places[draw_permutation(f"{seed}/{part}", ids[places])]
        blocks += [
            (places if every else dealt[number :: len(cells)], part, name, level)
            for number, (name, level) in enumerate(cells)
        ]
    images = _load_images(base, image, schema[image])
    pixels = np.empty((sum(len(places) for places, *_ in blocks), *images.shape[1:]), np.uint8)
    at = 0
    for places, _, name, level in blocks:
        part_of = pixels[at : at + len(places)]
        clean = images[places]
        part_of[...] = clean if name == CLEAN else _corrupt_images(clean, name, level, ids[places])
        at += len(places)
    origins = np.concatenate([places for places, *_ in blocks])
    sizes = [len(places) for places, *_ in blocks]
    columns: dict[str, pa.Array | NDArray[np.int64]] = {
        image: to_tensor_column(pixels),
        "published": pa.array(np.repeat([part for _, part, *_ in blocks], sizes)),
        "corruption": pa.array(np.repeat([name for _, _, name, _ in blocks], sizes)),
        "level": np.repeat([level for *_, level in blocks], sizes).astype(np.int64),
    }
    base_fields = [field.name for field in schema.fields if field.name not in columns]
    if absent := sorted(set(base_fields) - set(base.column_names)):
        raise BadDefinition(f"the base source has no field {', '.join(absent)}")
    return pa.table(columns | {name: base[name].take(origins) for name in base_fields})


def _draw_share(
    places: NDArray[np.int64], share: dict[str, int], part: str, ids: NDArray[np.uint64], seed: str
) -> NDArray[np.int64]:
    """Draw as many of the positions as `share` gives for a part."""
    if not set(share) <= {"train", "test"} or not 0 < share.get(part, len(places)) <= len(places):
        raise BadDefinition(f"share = {share}: give the number of the {len(places)} {part} rows (keys: train and test)")
    chosen: NDArray[np.int64] = places[draw_permutation(f"{seed} {part}", ids[places])[: share.get(part, len(places))]]
    return np.sort(chosen)


def _load_images(base: pa.Table, image: str, field: Field) -> NDArray[np.uint8]:
    """The images of `base` in the shape of `field`, (rows, *shape); encoded ones are decoded."""
    import pyarrow as pa

    if field.item != "uint8" or len(field.shape) not in (2, 3):
        raise BadDefinition(f"field {image!r} is {field.type}: images are uint8[h,w], uint8[h,w,3] or uint8[3,h,w]")
    column = base[image].combine_chunks()
    if not pa.types.is_fixed_size_list(column.type):
        side = field.shape[0]
        if field.shape != (side, side, 3):
            raise BadDefinition(f"field {image!r} is {field.type}: decoded images are uint8[n,n,3]")
        return decode_images(column.to_pylist(), side)
    flat: NDArray[np.uint8] = column.flatten().to_numpy()
    return flat.reshape(-1, *field.shape)


def _corrupt_images(images: NDArray[np.uint8], name: str, level: int, ids: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Corrupt images (rows, height, width), (rows, height, width, 3) or (rows, 3, height, width)."""
    first = images.ndim == 4 and images.shape[1] == 3 and images.shape[3] != 3
    if not first:
        return corrupt(images, name, level, ids)
    return np.moveaxis(corrupt(np.moveaxis(images, 1, -1), name, level, ids), -1, 1)
