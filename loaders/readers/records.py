"""Records with lists and structs inside, in Parquet, as data sets of the Hugging Face Hub have them; and annotations of
objects in images as COCO has them (Lin et al., ECCV 2014), for the reader `table`.

[distributions.options]
columns = { question = "messages.0.content", answer = "ground_truth", image = "image.bytes" }
constants = { "train.parquet" = { published = "train" } }
options = { options = "choices.text" }                # "A. .." and so on, an option a line
index = { answer = ["answerKey", "choices.label"] }   # the index of a value in a list
boxes = { boxes = "annotations.bbox" }                # COCO's x, y, width and height, as corners
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...core.errors import BadData, shorten_list
from ...core.progress import log_message
from ..files.reader_errors import convert_reader_errors

_NONE: Mapping[str, Any] = MappingProxyType({})
_ROWS = 256


def read(
    files: Mapping[str, Path],
    *,
    columns: Mapping[str, str],
    constants: Mapping[str, Mapping[str, str | int]] = _NONE,
    options: Mapping[str, str] = _NONE,
    index: Mapping[str, Sequence[str]] = _NONE,
    boxes: Mapping[str, str] = _NONE,
) -> Iterator[pa.Table]:
    """Yield the rows of all files. A path names a field of a struct, or an index of a list; a field's name after a list
    is that field of each item, so that lists of structs and structs of lists are read alike.

    `columns` (a field's path), `constants` (fields that are the same in all rows of a file), `options` (a list of
    texts, lettered), `index` (the paths of a value and of a list that has it), `boxes` (a list of boxes as COCO has
    them: the text of a detection task). Raises `BadData` with the file and row where a record is not so.
    """
    makers: dict[str, Callable[[Any], Any]] = {
        **{field: _make_getter(path) for field, path in columns.items()},
        **{field: _make_getter(path, _letter_options) for field, path in options.items()},
        **{field: _make_finder(*paths) for field, paths in index.items()},
        **{field: _make_getter(path, _write_boxes) for field, path in boxes.items()},
    }
    for name, path in files.items():
        with convert_reader_errors(name), pq.ParquetFile(path) as parquet_file:
            done = 0
            for batch in parquet_file.iter_batches(_ROWS):
                values_of: dict[str, list[Any]] = {field: [] for field in makers}
                for row, record in enumerate(batch.to_pylist(), done + 1):
                    for field, make in makers.items():
                        try:
                            values_of[field].append(make(record))
                        except (KeyError, IndexError, TypeError, ValueError) as error:
                            raise BadData(f"{name}, row {row}: no {field}: {type(error).__name__}: {error}") from error
                done += batch.num_rows
                same = {field: [value] * batch.num_rows for field, value in constants.get(name, {}).items()}
                yield pa.table({**values_of, **same})


def _make_getter(path: str, convert: Callable[[Any], Any] = lambda value: value) -> Callable[[Any], Any]:
    steps = path.split(".")

    def get(record: Any) -> Any:
        for step in steps:
            if step.isdecimal():
                record = record[int(step)]
            else:
                record = [item[step] for item in record] if isinstance(record, list) else record[step]
        return convert(record)

    return get


def _make_finder(value: str, values: str) -> Callable[[Any], int]:
    get, get_all = _make_getter(value), _make_getter(values)
    return lambda record: int(get_all(record).index(get(record)))


def _letter_options(texts: list[str]) -> str:
    return "\n".join(f"{chr(ord('A') + position)}. {text}" for position, text in enumerate(texts))


def _write_boxes(boxes: list[Sequence[float]]) -> str:
    return ";".join(" ".join(format_corners(*map(float, box))) for box in boxes)


def iterate_coco_images(document: Any, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the record of each image of a COCO file, numbered from 1: its own keys (`file_name` ..), and `boxes`, the
    text of its boxes, "x0 y0 x1 y1 class;.." in pixels; without a class if there is one category. Categories are
    numbered from 0 in the order of their ids. Regions of crowds are left out. Raises `BadData` for what is not in this
    form."""
    images, annotations = (
        document.get(key) if isinstance(document, dict) else None for key in ("images", "annotations")
    )
    if not isinstance(images, list) or not isinstance(annotations, list):
        raise BadData(f"{name}: no lists 'images' and 'annotations', so it is not a COCO file")
    try:
        names = {category["id"]: str(category["name"]) for category in document.get("categories", [])}
        number = {category: index for index, category in enumerate(sorted(names))}
        boxes: dict[Any, list[str]] = {image["id"]: [] for image in images}
        for index, annotation in enumerate(annotations, 1):
            if not annotation.get("iscrowd"):
                x, y, width, height = map(float, annotation["bbox"])
                if not (math.isfinite(x + y + width + height) and min(width, height) >= 0):
                    raise BadData(f"{name}, annotation {index}: {annotation['bbox']} is not x, y, width, height")
                corners = format_corners(x, y, width, height)
                own = [str(number[annotation["category_id"]])] if len(number) > 1 else []
                boxes[annotation["image_id"]].append(" ".join(corners + own))
        if len(number) > 1:
            log_message(f"{name}: classes {shorten_list([f'{number[key]} {names[key]}' for key in sorted(names)])}")
        for index, image in enumerate(images, 1):
            yield index, {**image, "boxes": ";".join(boxes[image["id"]])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadData(f"{name}: not a COCO file: {type(error).__name__}: {error}") from error


def format_corners(x: float, y: float, width: float, height: float) -> list[str]:
    """Format a box's corners x0, y0, x1 and y1; whole numbers without decimals."""
    sides = (x, y, x + width, y + height)
    return [f"{side:.0f}" if side.is_integer() else str(np.float32(side)) for side in sides]
