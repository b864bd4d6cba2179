"""Inputs of shifted rows, from which some algorithms learn."""

from typing import Any

import torch
from torch import Tensor

from . import Batch


def get_shifted_inputs(batch: Batch) -> tuple[Tensor, ...]:
    """The batch's inputs of shifted rows, (K, n, ..) each."""
    assert batch.unlabelled is not None
    return batch.unlabelled


def encode_both_domains(network: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """The features (K, n, width) of a batch's labelled rows, and (K, m, width) of its shifted ones: in one pass, as
    one batch for batch normalisation."""
    pairs = zip(batch.inputs, get_shifted_inputs(batch), strict=True)
    features = network.encode(network.embed(*(torch.cat([own, other], dim=1) for own, other in pairs)))
    rows = batch.target.shape[1]
    return features[:, :rows], features[:, rows:]
