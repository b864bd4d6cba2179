"""Annotations of objects in images as COCO has them (Lin et al., ECCV 2014), for the reader `table`: a row an image."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.errors import BadData, shorten_list
from ...core.progress import log_message


def iterate_coco_images(document: Any, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the record of each image, numbered from 1: its own keys (`file_name` ..), and `boxes`, the text of its
    boxes, "x0 y0 x1 y1 class;.." in pixels; without a class if there is one category. Categories are numbered from 0 in
    the order of their ids. Regions of crowds are left out. Raises `BadData` for what is not in this form."""
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
