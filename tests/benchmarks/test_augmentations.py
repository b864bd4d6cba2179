"""Augmentations: they change a picture, never its shape, type or range, and draw the same for a row wherever it stands."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.augmentations import augment_inputs
from farshift.benchmarks.model import Task
from farshift.core.errors import BadDefinition
from farshift.core.plugins import find_files_by_name
from hypothesis import given
from hypothesis import strategies as st

FAMILIES = sorted(find_files_by_name("benchmarks/augmentations", ".py"))
TASK = Task("classification", ("pixels",), "digit", classes=10)


def pictures(count: int, height: int = 8, width: int = 8, channels: int = 0, kind: type = np.uint8) -> np.ndarray:
    shape = (count, height, width, *((channels,) if channels else ()))
    drawn = np.random.default_rng(7).integers(0, 200, shape)
    return drawn.astype(kind)


def under(family: str, values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return augment_inputs(family, {"pixels": values}, TASK, ids)["pixels"]


def test_the_families_of_the_shipped_protocol_are_there():
    assert {"blur", "contrast", "noise", "occlusion", "translation"} <= set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
@given(
    height=st.integers(2, 9),
    width=st.integers(2, 9),
    channels=st.sampled_from([0, 1, 3]),
    kind=st.sampled_from([np.uint8, np.int64, np.float32]),
)
def test_shape_type_and_range_stay(family, height, width, channels, kind):
    values = pictures(4, height, width, channels, kind)
    before = values.copy()
    result = under(family, values, np.arange(4, dtype=np.uint64))
    assert result.shape == values.shape
    assert result.dtype == values.dtype
    assert np.array_equal(values, before), "the row itself is not touched"
    axes = tuple(range(1, values.ndim))
    assert (result.min(axis=axes) >= values.min(axis=axes)).all()
    assert (result.max(axis=axes) <= values.max(axis=axes)).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_changes_and_draws_by_its_own_id_alone(family):
    values, ids = pictures(50), np.arange(50, dtype=np.uint64) * 977
    result = under(family, values, ids)
    assert (result != values).any(axis=(1, 2)).all()
    order = np.random.default_rng(0).permutation(50)
    assert np.array_equal(under(family, values[order], ids[order]), result[order])
    assert np.array_equal(under(family, values[:1], ids[:1]), result[:1])


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"blur"}))
def test_rows_of_equal_pixels_are_drawn_differently(family):
    values = np.repeat(pictures(1), 64, axis=0)
    assert len(np.unique(under(family, values, np.arange(64, dtype=np.uint64)), axis=0)) > 1


def test_blur_is_the_mean_of_the_neighbourhood():
    values = pictures(3, 5, 6)
    padded = np.pad(values.astype(float), [(0, 0), (1, 1), (1, 1)], mode="edge")
    brute = np.array([[[padded[n, y : y + 3, x : x + 3].mean() for x in range(6)] for y in range(5)] for n in range(3)])
    assert np.array_equal(under("blur", values, np.arange(3, dtype=np.uint64)), np.rint(brute).astype(np.uint8))


def test_translation_moves_by_one_step_in_one_of_eight_directions():
    values = np.zeros((40, 8, 8), np.uint8)
    values[:, 4, 4] = 9
    result = under("translation", values, np.arange(40, dtype=np.uint64))
    places = {tuple(np.argwhere(row == 9)[0]) for row in result}
    assert places <= {(y, x) for y in (3, 4, 5) for x in (3, 4, 5)} - {(4, 4)}
    assert len(places) == 8


def test_occlusion_covers_a_quarter():
    values = np.full((30, 8, 8), 5, np.uint8)
    values[:, 0, 0] = 1
    result = under("occlusion", values, np.arange(30, dtype=np.uint64))
    covered = (result == 1).sum(axis=(1, 2))
    assert set(covered.tolist()) <= {16, 17}, "4 x 4 pixels, and the one that was low before"


@pytest.mark.parametrize("values", [np.array(["a", "b"], object), np.zeros((2, 5))], ids=["text", "a vector"])
def test_what_is_no_picture_is_refused(values):
    with pytest.raises(
        BadDefinition, match="the augmentation noise is for images, and the input 'pixels' is not an image"
    ):
        under("noise", values, np.arange(2, dtype=np.uint64))
