"""Instance-dependent label noise, and noise that is more frequent on harder rows.

Both work on integer images, and in integers wherever an order of summation or a library's exponential could change a
last digit: the same rows on every platform. Parameters are those of `noise`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import UNIT, draw_below, draw_normal_units, draw_uniform
from ...core.errors import BadDefinition, UnknownName
from ..assignment import Assignment
from ._training import check_rate, select_training

if TYPE_CHECKING:
    import pyarrow as pa

_CHUNK = 8192
_MOST_CLASSES = 1000
_STEPS = 256
_SCALE = 2**30


def instance_dependent(
    table: pa.Table,
    *,
    label: str,
    classes: int,
    image: str,
    brightest: int,
    rate: float,
    train: int | dict[str, str],
    seed: str,
    draw: int,
) -> Assignment:
    """A share `rate` of the training labels becomes a class that a random linear classifier predicts from the image.

    After Xia et al. 2020 (part-dependent label noise, arXiv 2006.07836, algorithm 2): W of shape (pixels, classes) is
    standard normal, z = x W, and the label becomes c, not the true one, with probability softmax(z) over the others.
    Three things differ. One W serves all rows, while theirs is drawn for each true class: here the wrong class depends
    on the image alone, apart from excluding the true class. x is the image divided by `brightest`, minus the mean
    training image (without which one class attracts nearly all rows). And their flip rate of a row is normal about
    `rate` and independent of x, which changes no distribution on average: here the number of wrong labels is exact
    instead.

    Parameters:
        image: the tensor field with the image.
        brightest: the largest value of a pixel, such as 255.
    """
    rows = select_training(table, label=label, classes=classes, train=train, seed=seed, draw=draw)
    if classes > _MOST_CLASSES:
        raise BadDefinition(f"classes = {classes}: instance-dependent noise takes at most {_MOST_CLASSES}")
    if brightest < 1:
        raise BadDefinition(f"brightest = {brightest}: give the largest pixel value, at least 1")
    pixels = _read_pixels(table, image)
    wrong = rows.first(rate)
    mean = np.rint(pixels[rows.rows].sum(axis=0, dtype=np.int64) / len(rows.rows))
    observer = draw_normal_units(f"{rows.stream}/observer", pixels.shape[1] * classes).reshape(-1, classes)
    weights = observer.astype(np.float64)
    draws = draw_uniform(f"{rows.stream}/observed class", table["row_id"].to_numpy()[wrong])
    given = np.empty(len(wrong), np.int64)
    for start in range(0, len(wrong), _CHUNK):
        some = slice(start, start + _CHUNK)
        # Integers below 2^53: the product is exact in any order of summation.
        logits = (pixels[wrong[some]] - mean) @ weights
        given[some] = _draw_softmax(logits / (brightest * UNIT), rows.truth[wrong[some]], draws[some])
    return rows.with_labels(wrong, given)


def harder_noisier(
    table: pa.Table,
    *,
    label: str,
    classes: int,
    image: str,
    rate: float,
    train: int | dict[str, str],
    seed: str,
    draw: int,
) -> Assignment:
    """Symmetric exclusive noise, twice as frequent in the harder half of the training rows as in the easier half: 2/3
    `rate` and 4/3 `rate`, both exact (Hase et al. 2024, arXiv 2401.06751, section on noisy hard labels).

    A row's hardness is its squared distance to its own class's mean training image minus that to the nearest other
    class's. Severity, also of test rows, is the decile among the training rows: 1 the easiest, 10 the hardest.

    Parameters:
        image: the tensor field with the image.
    """
    if check_rate(rate) > 0.75:
        raise BadDefinition(f"rate = {rate}: the harder half would have {4 / 3 * rate:.2f} of its labels wrong")
    rows = select_training(table, label=label, classes=classes, train=train, seed=seed, draw=draw)
    hardness = _compute_centroid_margin(_read_pixels(table, image), rows.truth, rows.rows)
    ranked = np.sort(hardness[rows.rows])
    severity = 1 + np.searchsorted(ranked, hardness, side="left") * 10 // (len(ranked) + 1)
    order = rows.order
    is_hard = severity[rows.rows[order]] > 5
    easy, hard = order[~is_hard], order[is_hard]
    chosen = easy[: round(rate * 2 / 3 * len(easy))], hard[: round(rate * 4 / 3 * len(hard))]
    wrong = rows.rows[np.concatenate(chosen)]
    step = 1 + draw_below(f"{rows.stream}/other class", table["row_id"].to_numpy()[wrong], classes - 1)
    outcome = rows.with_labels(wrong, (rows.truth[wrong] + step) % classes)
    outcome.severity = severity
    return outcome


def _compute_centroid_margin(
    pixels: NDArray[np.uint8], truth: NDArray[np.int64], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return each image's squared distance to its own class's mean image minus that to the nearest other class's, shape
    (images,). `pixels` has shape (images, pixels); means are over `rows`. Above 0 a nearest-mean classifier errs."""
    classes, own = np.unique(truth, return_inverse=True)
    counts = np.bincount(own[rows], minlength=len(classes))
    if len(classes) < 2 or not counts.all():
        raise BadDefinition("hardness needs two classes or more, and a training row of each")
    sums = np.stack([pixels[rows[own[rows] == c]].sum(axis=0, dtype=np.int64) for c in range(len(classes))])
    norms = (sums * sums).sum(axis=1) / counts.astype(np.float64) ** 2
    margin = np.empty(len(truth))
    for start in range(0, len(truth), _CHUNK):
        some = slice(start, start + _CHUNK)
        # |x|^2 is common to all distances of a row; the product is of integers below 2^53, hence exact.
        distance = norms - 2.0 * (pixels[some].astype(np.float64) @ sums.T.astype(np.float64)) / counts
        own_index = np.arange(len(distance)), own[some]
        to_own = distance[own_index]
        distance[own_index] = np.inf
        margin[some] = to_own - distance.min(axis=1)
    return margin


def _read_pixels(table: pa.Table, image: str) -> NDArray[np.uint8]:
    """Return the flattened images, shape (rows, pixels)."""
    import pyarrow as pa

    if image not in table.column_names:
        raise UnknownName("field", image, table.column_names)
    kind = table[image].type
    if not (pa.types.is_fixed_size_list(kind) and kind.value_type == pa.uint8()):
        raise BadDefinition(f"field {image!r} is {kind}, and the rule needs a tensor of uint8")
    column = table[image].combine_chunks()
    flat: NDArray[np.uint8] = column.flatten().to_numpy()
    return flat.reshape(table.num_rows, kind.list_size)


@cache
def _tabulate_exponentials() -> NDArray[np.float64]:
    """Return round(2^30 exp(-i / 256)) for i = 0, 1 .. until it is 0. No entry is so near a half that the last digit of
    an exponential could change it."""
    steps = np.arange(int(_STEPS * np.log(2.0 * _SCALE)) + 2)
    rounded: NDArray[np.float64] = np.rint(_SCALE * np.exp(-steps / _STEPS))
    return rounded


def _draw_softmax(
    logits: NDArray[np.float64], truth: NDArray[np.int64], draws: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Draw for each row a class other than its true one, with probability softmax(logits) among the others (to 1/256 in
    the logits); `draws` are uniform in [0, 1). Shapes (rows, classes), (rows,), (rows,) -> (rows,)."""
    masked = logits.copy()
    masked[np.arange(len(masked)), truth] = -np.inf
    table = _tabulate_exponentials()
    behind = (masked.max(axis=1, keepdims=True) - masked) * _STEPS
    mass = table[np.minimum(behind, len(table) - 1).astype(np.int64)]
    mass[np.arange(len(masked)), truth] = 0.0
    reached = np.cumsum(mass, axis=1)
    total = reached[:, -1]
    # A draw near 1 times the total may round up to the total, and then no class would be reached.
    chosen: NDArray[np.int64] = (reached <= np.minimum(draws * total, total - 1)[:, None]).sum(axis=1)
    return chosen
