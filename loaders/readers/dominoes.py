"""Dominoes: one image above another, where the upper, simpler image may predict the label of the lower one.

After Shah et al. 2020 (The Pitfalls of Simplicity Bias, arXiv 2006.07710), with clothing in place of CIFAR as in
Pagliardini et al. 2023 (D-BAT, arXiv 2202.04414). Here the two halves are drawn independently of each other; a split
chooses the training pairs, and with them the correlation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ._idx import read_images_and_labels
from ._tensors import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path], *, upper: dict[str, Any], lower: dict[str, Any], rows: int, seed: str) -> pa.Table:
    """Columns `image` (uint8, twice as high as wide), `label` (0 or 1: the class of the lower half) and the text
    `above` (the name of the upper half's class). `upper` and `lower` have `pair`, the files (images, labels), and
    `classes`, two classes by name and number. No image is used twice, and each class is used equally often."""
    import pyarrow as pa

    if rows % 4:
        raise BadDefinition(f"rows = {rows}: must be a multiple of 4, with one quarter for each pair of classes")
    counter = np.arange(rows)
    above, label = counter % 2, counter // 2 % 2
    top = _draw_images(files, upper, above, f"{seed}/upper")
    bottom = _draw_images(files, lower, label, f"{seed}/lower")
    names = np.array(list(upper["classes"]))[above]
    image = np.concatenate([top, bottom], axis=1)
    return pa.table({"image": to_tensor_column(image), "label": label, "above": names.tolist()})


def _draw_images(
    files: dict[str, Path], half: dict[str, Any], classes: NDArray[np.int64], stream: str
) -> NDArray[np.uint8]:
    """Draw an image of the given class, 0 or 1, for each row."""
    images, labels, _ = read_images_and_labels(files, [half["pair"]])
    chosen = np.zeros(len(classes), np.int64)
    for number, (name, code) in enumerate(half["classes"].items()):
        places = np.flatnonzero(labels == code)
        need = np.flatnonzero(classes == number)
        if len(need) > len(places):
            raise BadDefinition(f"{len(need)} images of {name} are needed, but there are {len(places)}")
        chosen[need] = places[draw_permutation(stream, places.astype(np.uint64))[: len(need)]]
    return images[chosen]
