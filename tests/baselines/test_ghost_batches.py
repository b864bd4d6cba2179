"""Ghost batches: a large batch is normalised in pieces, as torch's normalisation does it piece by piece."""

from __future__ import annotations

import pytest
import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.layers.norm import BatchNorm
from farshift.baselines.networks import resnet
from farshift.core.errors import ModelError
from torch import nn

from .side_by_side import built

REPLICAS = 2


def batch(rows: int) -> torch.Tensor:
    """Pictures whose rows drift, so that pieces have other moments than the whole."""
    drift = torch.arange(rows, dtype=torch.float64)[:, None, None, None] / 4
    return torch.randn(REPLICAS, rows, 3, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + drift


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize(("rows", "ghost", "pieces"), [(12, 4, 3), (14, 4, 3), (7, 4, 1), (12, 0, 1)])
def test_each_piece_is_normalised_by_its_own_moments_and_the_running_ones_see_them_in_turn(
    rows: int, ghost: int, pieces: int, joined: bool
) -> None:
    layer, x = built(lambda: BatchNorm(3, ghost=ghost), REPLICAS), batch(rows)
    states = [layer.running_mean, layer.running_var, layer.weight, layer.bias]
    result = layer._joined(True, x, *states) if joined else layer(x)
    for replica in range(REPLICAS):
        plain = nn.BatchNorm2d(3).double()
        expected = torch.cat([plain(piece) for piece in x[replica].tensor_split(pieces)])
        assert torch.allclose(result[replica], expected, atol=1e-12)
        assert torch.allclose(layer.running_mean[replica], plain.running_mean, atol=1e-12)
        assert torch.allclose(layer.running_var[replica], plain.running_var, atol=1e-12)


def test_answers_are_those_of_the_running_moments_whatever_the_batch() -> None:
    layer, x = built(lambda: BatchNorm(3, ghost=4), REPLICAS), batch(12)
    layer(x)
    layer.eval()
    assert torch.equal(layer(x)[:, 5:6], layer(x[:, 5:6]))


def test_a_resnet_passes_the_rows_of_a_ghost_batch_to_all_its_layers() -> None:
    sizes = Sizes(2, numbers=64, shape=(8, 8))
    created = resnet.Network(sizes, {"widths": [4, 8], "activation": "gelu", "ghost": 16})
    assert {item.ghost for item in created.modules() if isinstance(item, BatchNorm)} == {16}
    with pytest.raises(ModelError, match="ghost = 1: use 2 rows or more"):
        resnet.Network(sizes, {"widths": [4], "activation": "gelu", "ghost": 1})
