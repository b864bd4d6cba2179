"""Shared code of algorithms that learn from the inputs of shifted rows."""

from __future__ import annotations

from torch import Tensor

from ...core.errors import ModelError
from ..replicas.hyperparameters import Hyperparameters
from ..training.algorithm import AlgorithmContext
from ..training.sampler import Batch


def check_shifted(name: str, hyperparameters: Hyperparameters, about: AlgorithmContext) -> None:
    """`ModelError` where there are no inputs of shifted rows, or a batch would hold none."""
    if about.data.unlabelled is None:
        raise ModelError(
            f"{name} trains on inputs of the shifted test rows, which this benchmark does not permit: "
            "choose one whose protocol has ood_test_inputs, such as vowel/speakers_unlabelled"
        )
    if not hyperparameters["batch_size"] and hyperparameters["chunk"]:
        raise ModelError(
            f"{name}: chunks of a full batch hold no inputs of shifted rows: set chunk = 0 or a batch_size"
        )


def get_shifted_inputs(batch: Batch) -> tuple[Tensor, ...]:
    """The batch's inputs of shifted rows, (K, n, ..) each."""
    assert batch.unlabelled is not None
    return batch.unlabelled
