"""Prompts of projected and permuted tasks, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.derivations.projected_tasks import rows
from farshift.splits.schema import Field, Schema

SCHEMA = Schema((Field("prompt", "float32[5,8]", "input"), Field("answer", "int64", "label")))
# Of class c, pixel c is bright: more or less so in each of five images by each writer. There is a class too many.
CLASSES = np.arange(40) % 4
PIXELS = np.zeros((40, 6), np.uint8)
PIXELS[np.arange(40), CLASSES] = 100 + np.arange(40)
SEEN = {"name": "seen", "rows": 200, "of": "a", "first": 0, "tasks": 3}
NEW = {"name": "new", "rows": 100, "of": "b", "first": 7, "tasks": 2}


def base() -> pa.Table:
    flat = pa.FixedSizeListArray.from_arrays(pa.array(PIXELS.ravel()), 6)
    return pa.table({"pixels": flat, "digit": CLASSES, "by": ["a"] * 20 + ["b"] * 20})


def create(**changed: Any) -> tuple[pa.Table, np.ndarray]:
    options = {"image": "pixels", "label": "digit", "classes": 3, "of": "by", "width": 4, "pairs": 4}
    table = rows(base(), SCHEMA, **options | {"regimes": [SEEN, NEW], "seed": "s"} | changed)
    lines = (options["pairs"] + 1, -1)
    return table, table["prompt"].combine_chunks().flatten().to_numpy().reshape(len(table), *lines)


def test_each_task_is_one_linear_map_of_pixels_and_one_order_of_labels() -> None:
    table, prompt = create()
    task, answer = table["task"].to_numpy(), table["answer"].to_numpy()
    assert table["regime"].to_pylist() == ["seen"] * 200 + ["new"] * 100
    assert {*task[:200]} == {0, 1, 2} and {*task[200:]} == {7, 8}
    assert (prompt[:, :4, 4:7].sum(axis=2) == 1).all() and (prompt[:, :4, 7] == 1).all()
    assert (prompt[:, 4, 4:] == 0).all(), "a query has no label"
    matrices = []
    for number in (0, 1, 2, 7, 8):
        here = prompt[task == number].astype(np.float64)
        points = np.concatenate([here[:, :4, :4].reshape(-1, 4), here[:, 4, :4]])
        labels = np.concatenate([here[:, :4, 4:7].argmax(axis=2).ravel(), answer[task == number]])
        assert len(np.unique(points.round(5), axis=0)) == 15, "fifteen images of its writers, always at one place"
        # One matrix maps all images: a class's images lie on a line, whose direction is a row of the matrix.
        directions = [np.linalg.svd(points[labels == label] - points[labels == label][0])[1] for label in range(3)]
        assert all(sizes[1] < 1e-5 < sizes[0] for sizes in directions)
        matrices.append(tuple(points.mean(axis=0).round(3)))
    assert len(set(matrices)) == 5


def test_the_examples_tell_the_answer_and_the_labels_of_another_task_do_not() -> None:
    """The nearest example is right wherever the query's class is shown, in new tasks too; a task's meaning of labels
    differs from another's."""
    table, prompt = create(regimes=[SEEN | {"tasks": 200, "rows": 400}])
    answer = table["answer"].to_numpy()
    shown = prompt[:, :4, 4:7].argmax(axis=2)
    nearest = np.square(prompt[:, :4, :4] - prompt[:, 4:, :4]).sum(axis=2).argmin(axis=1)
    known = (shown == answer[:, None]).any(axis=1)
    assert 0.7 < known.mean() < 0.95
    assert (shown[np.arange(400), nearest] == answer)[known].mean() > 0.95
    assert (np.square(prompt[:, :4, :4] - prompt[:, 4:, :4]).sum(axis=2) > 0).all(), "no example is the query"
    assert np.bincount(answer).min() > 100, "no label is likelier"


def test_no_images_are_refused() -> None:
    with pytest.raises(BadDefinition, match="projected_tasks: seen: no two rows whose by is 'c'"):
        create(regimes=[SEEN | {"of": "c"}])
