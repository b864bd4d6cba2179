"""Features of labelled rows and of shifted ones, in one pass through the network."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import Batch
from ._shifted import get_shifted_inputs


def encode_both_domains(network: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """The features (K, n, width) of a batch's labelled rows, and (K, m, width) of its shifted ones: in one pass, as
    one batch for batch normalisation."""
    pairs = zip(batch.inputs, get_shifted_inputs(batch), strict=True)
    features = network.encode(network.embed(*(torch.cat([own, other], dim=1) for own, other in pairs)))
    rows = batch.target.shape[1]
    return features[:, :rows], features[:, rows:]
