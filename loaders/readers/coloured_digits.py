"""ColoredMNIST: digits of two colours, where in training colour predicts the label better than shape.

After Arjovsky et al. 2019 (Invariant Risk Minimization, arXiv 1907.02893, section 5.2) and Gulrajani and Lopez-Paz 2021
(DomainBed, arXiv 2007.01434): the label is whether the digit is below 5, flipped with a fixed probability (`noise`);
the colour is the label, flipped with a probability that depends on the environment. Every draw is a pure function of
`seed` and of the image's index in the files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.draws import draw_permutation, draw_uniform
from ...core.errors import BadDefinition
from ._idx import read_images_and_labels
from ._tensors import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa

_COLOURS = np.array(["red", "green"])


def read(
    files: dict[str, Path],
    *,
    pairs: list[list[str]],
    deals: list[dict[str, Any]],
    noise: float,
    stride: int,
    seed: str,
) -> pa.Table:
    """Columns `image` (uint8, 2 x height x width: the red channel, then the green one), `label` (1 for digits 0 to 4
    before the noise), and the metadata `digit`, `colour` and `environment`.

    pairs: the files (images, labels), concatenated. deals: each shuffles the images `rows` = [first, last), and
    distributes the first `take` of them (by default all) to its `environments` (name: the probability that colour and
    label differ) in turn. stride: every stride-th row and column of pixels is kept.
    """
    import pyarrow as pa

    images, digits, _ = read_images_and_labels(files, pairs)
    places, names, flips = [], [], []
    for deal in deals:
        first, last = deal["rows"]
        if not 0 <= first < last <= len(images):
            raise BadDefinition(f"rows = {deal['rows']}, but there are {len(images)} images")
        order = first + draw_permutation(f"{seed}/order", np.arange(first, last, dtype=np.uint64))[: deal.get("take")]
        turn = np.arange(len(order)) % len(deal["environments"])
        places.append(order)
        names.append(np.array(list(deal["environments"]))[turn])
        flips.append(np.array(list(deal["environments"].values()), np.float64)[turn])
    indices, environment = np.concatenate(places), np.concatenate(names)
    counter = indices.astype(np.uint64)
    label = (digits[indices] < 5) ^ (draw_uniform(f"{seed}/noise", counter) < noise)
    colour = (label ^ (draw_uniform(f"{seed}/colour", counter) < np.concatenate(flips))).astype(np.int64)
    grey = images[indices, ::stride, ::stride]
    inks = np.zeros((len(indices), 2, *grey.shape[1:]), np.uint8)
    inks[np.arange(len(indices)), colour] = grey
    return pa.table(
        {
            "image": to_tensor_column(inks),
            "label": label.astype(np.int64),
            "digit": digits[indices],
            "colour": _COLOURS[colour].tolist(),
            "environment": environment.tolist(),
        }
    )
