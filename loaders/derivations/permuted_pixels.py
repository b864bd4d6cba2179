"""Tasks made of one source of images: in each, the pixels of all images are in another fixed order.

Permuted MNIST, as in Goodfellow, Mirza, Xiao, Courville and Bengio, "An Empirical Investigation of Catastrophic
Forgetting in Gradient-Based Neural Networks" (arXiv 1312.6211): tasks of one difficulty whose inputs differ, for
learning one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ...splits.schema import Schema
from ..generators._rows import make_counters, select_words
from ..readers._arrow_types import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa


def rows(base: pa.Table, schema: Schema, *, image: str, tasks: int, seed: str) -> pa.Table:
    """Return the fields of `schema`, each row of `base` once in each task: `task` (`1`, .., with as many digits as the
    last), and the fields of `base`, `image` (numbers of one shape) permuted. Task 1 has the images as they are; the
    order of pixels in another is drawn by `seed` and its number."""
    import pyarrow as pa

    if tasks < 1:
        raise BadDefinition(f"tasks = {tasks}: use 1 or more")
    shape = schema[image].shape
    pixels = base[image].combine_chunks().flatten().to_numpy().reshape(len(base), -1)
    counters = make_counters(pixels.shape[1])
    orders = [
        np.arange(pixels.shape[1]) if task == 0 else draw_permutation(f"{seed}/{task}", counters)
        for task in range(tasks)
    ]
    permuted = np.concatenate([pixels[:, order] for order in orders]).reshape(-1, *shape)
    names = [f"{task + 1:0{len(str(tasks))}d}" for task in range(tasks)]
    columns = {
        image: to_tensor_column(permuted),
        "task": select_words(names, np.repeat(np.arange(tasks), len(base))),
    }
    every = np.tile(np.arange(len(base)), tasks)
    base_fields = [field.name for field in schema.fields if field.name not in columns]
    return pa.table(columns | {name: base[name].take(every) for name in base_fields})
