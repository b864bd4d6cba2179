"""Shared code of algorithms that learn from the inputs of shifted rows."""

from __future__ import annotations

from torch import Tensor

from . import Batch


def get_shifted_inputs(batch: Batch) -> tuple[Tensor, ...]:
    """The batch's inputs of shifted rows, (K, n, ..) each."""
    assert batch.unlabelled is not None
    return batch.unlabelled
