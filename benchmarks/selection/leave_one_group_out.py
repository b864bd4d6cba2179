"""leave_one_group_out: for each training group, a model is trained on the other groups and evaluated on this one; the
setting with the best mean over groups is chosen (Gulrajani and Lopez-Paz, ICLR 2021). No target data is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from . import Fold, SelectionData

if TYPE_CHECKING:
    from ..benchmark import Benchmark
    from ..model_inputs.rows import ModelInputs

PART = "leave_one_group_out"
MAX_GROUPS = 50


def unavailable(benchmark: Benchmark) -> str:
    groups = benchmark.part("train").row_metadata.get("group")
    count = 0 if groups is None else len(np.unique(groups))
    if count < 2:
        return f"the training rows of {benchmark.name} have {count} group{'' if count == 1 else 's'}; two are required"
    return f"{count} training groups exceed the limit of {MAX_GROUPS} models to train" if count > MAX_GROUPS else ""


def ballot(benchmark: Benchmark) -> SelectionData:
    part = benchmark.part("train")
    return SelectionData(part.row_ids, part.observed_labels(), part.row_metadata["group"])


def folds(benchmark: Benchmark, model_inputs: ModelInputs) -> Iterator[Fold]:
    train = model_inputs.training("train")
    groups = train.columns["group"]
    training_inputs = model_inputs.part("train")
    for group in sorted(set(groups.tolist())):
        out = groups == group
        yield Fold(str(group), train.select(~out), training_inputs.select(np.flatnonzero(out)))
