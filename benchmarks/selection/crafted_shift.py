"""crafted_shift: validation on synthetic shifts (Efthymiadis et al., Crafting Distribution Shifts, WACV 2025).

Families of augmentations are divided into folds. A model is trained on the training rows and on copies of them
augmented with the families of the other folds, and evaluated on the validation rows augmented with the families of its
own fold; the setting with the best mean over families is chosen. No target data is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from ...core.plugins import find_module_file
from ..augmentations import augment_inputs
from . import Fold, SelectionData, needs_part

if TYPE_CHECKING:
    from ..benchmark import Benchmark
    from ..model_inputs.rows import ModelInputs

PART = "crafted_shift"


def unavailable(benchmark: Benchmark) -> str:
    for family in _list_families(benchmark):
        find_module_file("benchmarks/augmentations", family, "augmentation")
        schema = benchmark.split.source.schema
        for name in benchmark.task.inputs:
            if len(schema[name].shape) < 2:
                return f"the input {name!r} is not an image, and augmentations require images"
    return needs_part(benchmark, "id_val")


def ballot(benchmark: Benchmark) -> SelectionData:
    part = benchmark.part("id_val")
    families = _list_families(benchmark)
    ids = np.concatenate([compute_copy_ids(family, part.row_ids) for family in families])
    return SelectionData(ids, np.tile(part.observed_labels(), len(families)), np.repeat(families, len(part)))


def folds(benchmark: Benchmark, model_inputs: ModelInputs) -> Iterator[Fold]:
    crafted = benchmark.definition.protocol.crafted
    assert crafted is not None
    train, val = model_inputs.training("train"), model_inputs.part("id_val")
    families = _list_families(benchmark)
    for number in range(crafted.folds):
        fold_families = families[number :: crafted.folds]
        augmented_tables = [
            train.replaced(
                augment_inputs(family, train.columns, benchmark.task, train.row_ids),
                compute_copy_ids(family, train.row_ids),
            )
            for family in families
            if family not in fold_families
        ]
        held_out = [
            val.replaced(
                augment_inputs(family, val.batch(slice(None)), benchmark.task, val.row_ids),
                compute_copy_ids(family, val.row_ids),
            )
            for family in fold_families
        ]
        yield Fold("+".join(fold_families), train.concatenate(augmented_tables), held_out[0].concatenate(held_out[1:]))


def compute_copy_ids(family: str, row_ids: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the ids of the rows' copies that are augmented with a family, shape (n,)."""
    return draw_bits(f"{PART}/{family}", row_ids)


def _list_families(benchmark: Benchmark) -> list[str]:
    crafted = benchmark.definition.protocol.crafted
    return [] if crafted is None else sorted(crafted.families)
