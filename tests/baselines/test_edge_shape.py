"""Canny's edge maps, and the shape bias that is learned from them."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.algorithms.edge_shape import HIGH, LOW, SIGMA, detect_edges
from farshift.baselines.encoding.encoding import Sizes
from numpy.typing import NDArray
from scipy import ndimage

from .small_stacks import (
    CLASSES,
    batch_of,
    begun,
    clock_of,
    close,
    encode,
    head,
    moved_along,
    rows,
    weights,
)

COLOUR = Sizes(CLASSES, numbers=8 * 9 * 3, shape=(8, 9, 3))
CHANNELS_FIRST = Sizes(CLASSES, numbers=3 * 8 * 9, shape=(3, 8, 9))
GREY = Sizes(CLASSES, numbers=8 * 9, shape=(8, 9))


def canny(image: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same by SciPy's filters, pixel by pixel, and its labelling of connected parts."""
    smooth = ndimage.gaussian_filter(image, SIGMA, mode="nearest", truncate=3.0)
    down, across = (ndimage.sobel(smooth, axis, mode="nearest") for axis in (0, 1))
    size = np.pad(np.hypot(down, across), 1)
    ridge = np.zeros(image.shape, bool)
    for row, column in np.ndindex(image.shape):
        angle = np.degrees(np.arctan2(down[row, column], across[row, column]))
        sector = round(angle / 45) % 4
        step = ((0, 1), (1, 1), (1, 0), (1, -1))[sector]
        here = size[row + 1, column + 1]
        behind, ahead = (size[row + 1 + s * step[0], column + 1 + s * step[1]] for s in (-1, 1))
        ridge[row, column] = here > behind and here >= ahead
    size = size[1:-1, 1:-1]
    parts, count = ndimage.label(ridge & (size > LOW), np.ones((3, 3)))
    stored = [part for part in range(1, count + 1) if (size[parts == part] > HIGH).any()]
    return np.isin(parts, stored).astype(float)


def test_edge_maps_are_cannys_as_scipys_filters_have_it() -> None:
    drawn = np.random.default_rng(0).random((20, 17, 23))
    images = np.stack([ndimage.gaussian_filter(image, 0.5 + position / 10) for position, image in enumerate(drawn)])
    result = detect_edges(torch.from_numpy(images))
    assert np.array_equal(result.numpy(), np.stack([canny(image) for image in images]))
    assert 0.02 < result.mean() < 0.5


@pytest.mark.parametrize("sizes", [COLOUR, CHANNELS_FIRST, GREY], ids=["H W C", "C H W", "H W"])
def test_an_edge_map_has_the_layout_of_its_image_and_the_same_edges_in_every_channel(sizes: Sizes) -> None:
    algorithm = begun("edge_shape", {}, sizes=sizes).stack.algorithm
    flat = rows(sizes=sizes).inputs[1]
    image = flat.view(-1, *sizes.shape).numpy()
    axis = {COLOUR: 3, CHANNELS_FIRST: 1, GREY: None}[sizes]
    grey = image if axis is None else image.mean(axis)
    expected = np.stack([canny(item) for item in grey])
    if axis is not None:
        expected = np.stack([expected] * 3, axis)
    assert np.array_equal(algorithm.drawn(flat).view(image.shape).numpy(), expected)


def test_the_loss_is_the_mean_of_those_on_images_and_weighted_on_their_edge_maps() -> None:
    training = begun("edge_shape", {}, {"shape_weight": 0.25}, sizes=GREY)
    stack, batch, before = training.stack, batch_of(training), [weights(training, k) for k in (0, 1)]
    losses, expected = stack.algorithm.loss(stack.network, batch, clock_of(training)), []
    training.step()
    for k, w in enumerate(before):
        image = batch.inputs[1][k]
        outline = torch.stack([torch.from_numpy(canny(item.view(8, 9).numpy())).flatten() for item in image])
        both = [F.cross_entropy(head(w, encode(w, seen)), batch.target[k]) for seen in (image, outline)]
        expected.append((both[0] + (1.0, 0.25)[k] * both[1]) / 2)
    assert close(losses, torch.stack(expected))
    assert moved_along(training, before, expected)


def test_predictions_are_averaged_over_image_and_edge_map() -> None:
    training = begun("edge_shape", {}, {}, sizes=GREY)
    data = rows(sizes=GREY)
    result = training.stack.answer(*data.inputs).softmax(-1)
    outlines = training.stack.algorithm.drawn(data.inputs[1])
    for k in (0, 1):
        w = weights(training, k)
        each = [head(w, encode(w, seen)).softmax(-1) for seen in (data.inputs[1], outlines)]
        assert close(result[k], (each[0] + each[1]) / 2)
