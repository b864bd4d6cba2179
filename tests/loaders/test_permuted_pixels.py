"""Tasks of permuted pixels, against plain loops."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition
from farshift.loaders.derivations.permuted_pixels import rows
from farshift.splits.schema import Field, Schema

SCHEMA = Schema(
    (Field("pixels", "uint8[2,3]", "input"), Field("digit", "int64", "label"), Field("task", "string", "meta"))
)
PIXELS = np.arange(24, dtype=np.uint8).reshape(4, 6)


def base() -> pa.Table:
    return pa.table({"pixels": pa.FixedSizeListArray.from_arrays(pa.array(PIXELS.ravel()), 6), "digit": np.arange(4)})


def test_every_task_has_all_images_in_one_order_of_its_own() -> None:
    made = rows(base(), SCHEMA, image="pixels", tasks=10, seed="s")
    assert made["task"].to_pylist() == [f"{task:02d}" for task in range(1, 11) for _ in range(4)]
    assert made["digit"].to_pylist() == [0, 1, 2, 3] * 10
    blocks = np.array(made["pixels"].combine_chunks().flatten().to_numpy()).reshape(10, 4, 6)
    assert (blocks[0] == PIXELS).all()
    orders = [tuple(block[0].tolist()) for block in blocks]
    assert len(set(orders)) > 5
    for order, block in zip(orders, blocks, strict=True):
        assert sorted(order) == [0, 1, 2, 3, 4, 5]
        assert (block == PIXELS[:, list(order)]).all()


def test_no_task_is_refused() -> None:
    with pytest.raises(BadDefinition, match="tasks = 0"):
        rows(base(), SCHEMA, image="pixels", tasks=0, seed="s")
