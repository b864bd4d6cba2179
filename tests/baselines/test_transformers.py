"""The Transformers against torch.nn's own, alone against among many, and taught against decoded."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.decoding import shift_right
from farshift.baselines.encoding.encoding import BOS, EOS, PAD, Sizes
from farshift.baselines.replicas.rng import Rng, make_keys
from farshift.baselines.replicas.stacked import (
    attach_rng,
    count_parameters,
)
from farshift.core.errors import ModelError
from farshift.core.plugins import find_files_by_name, load_module
from torch import Tensor, nn

NETWORKS = ["transformer", "decoder_transformer"]
POSITIONS = sorted(find_files_by_name("baselines/positions", ".py"))
SMALL: dict[str, Any] = {"width": 16, "heads": 2, "layers": 2, "feedforward": 32, "position_range": 64}

SOURCE = torch.tensor([[4, 5, 6, 7, 8], [8, 4, PAD, PAD, PAD], [5, 5, 5, PAD, PAD]])
TARGET = torch.tensor([[4, 5, 6, 7], [7, 7, 4, EOS], [5, EOS, PAD, PAD]])


def fresh(name: str, seed: int = 0, aligned: bool = False, **settings: Any) -> Any:
    """A small untrained network of one replica in float64, with weights large enough to be opinionated."""
    file = load_module("baselines/networks", name, "network")
    torch.manual_seed(seed)
    network = file.Network(Sizes(8, source=9, aligned=aligned), file.SETTINGS | SMALL | settings).double()
    for weight in network.parameters():
        weight.data.mul_(1.5)
    return network


def twice(x: Tensor) -> Tensor:
    """The same rows for each of two replicas."""
    return x.expand(2, *x.shape)


def test_the_encoder_decoder_equals_torch_nn_s_own_in_values_and_gradients() -> None:
    network = fresh("transformer")
    kind = {"dim_feedforward": 32, "dropout": 0.0, "batch_first": True, "norm_first": True, "dtype": torch.float64}
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, **kind), 2, nn.LayerNorm(16).double(), False)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 2, **kind), 2, nn.LayerNorm(16).double())
    _copied(network.encoder, encoder)
    _copied(network.decoder, decoder)
    read, wrote = (nn.Parameter(table.weight[0].detach().clone()) for table in (network.read, network.wrote))

    order = _sinusoids(5)
    memory = encoder(4 * read[SOURCE] + order, src_key_padding_mask=SOURCE == PAD)
    x = 4 * wrote[shift_right(TARGET)] + order[:4]
    later = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    features = decoder(x, memory, tgt_mask=later, memory_key_padding_mask=SOURCE == PAD)
    expected = F.linear(features, network.head.weight[0], network.head.bias[0])

    result = network(SOURCE[None], TARGET[None])
    assert torch.allclose(result[0], expected, rtol=0, atol=1e-12)
    result.square().sum().backward()
    expected.square().sum().backward()
    for table, plain in ((network.read, read), (network.wrote, wrote)):
        assert torch.allclose(table.weight.grad[0], plain.grad, rtol=1e-10, atol=1e-10)
    own, plain_own = network.encoder.blocks[0].own.query.weight.grad[0], encoder.layers[0].self_attn.in_proj_weight.grad
    assert torch.allclose(own, plain_own[:16], rtol=1e-10, atol=1e-10)


def test_the_decoder_alone_equals_a_causal_torch_nn_encoder_on_each_row_without_its_padding() -> None:
    network = fresh("decoder_transformer")
    layer = nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True, dtype=torch.float64)
    plain = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16).double(), False)
    _copied(network.stack, plain)
    result = network(SOURCE[None], TARGET[None])[0]
    for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        source = source[source != PAD]
        x = 4 * torch.cat([network.read.weight[0, source], network.wrote.weight[0, shift_right(target)]])
        later = nn.Transformer.generate_square_subsequent_mask(len(x), dtype=torch.float64)
        features = plain((x + _sinusoids(len(x)))[None], mask=later)[0, len(source) :]
        expected = F.linear(features, network.head.weight[0], network.head.bias[0])
        assert torch.allclose(result[row], expected, rtol=0, atol=1e-12)


def _sinusoids(count: int) -> Tensor:
    """Those of the first `count_replicas` places, 16 wide."""
    pace = 10_000 ** (torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    angles = torch.arange(count)[:, None] / pace
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def _copied(stack: Any, plain: Any) -> None:
    """The weights of one replica into torch.nn's encoder or decoder."""
    for block, layer in zip(stack.blocks, plain.layers, strict=True):
        pairs = [(block.own, layer.self_attn), (getattr(block, "cross", None), getattr(layer, "multihead_attn", None))]
        for attention, other in pairs:
            if attention is not None:
                state = {
                    "in_proj_weight": torch.cat([attention.query.weight[0], attention.pair.weight[0]]),
                    "in_proj_bias": torch.cat([attention.query.bias[0], attention.pair.bias[0]]),
                    "out_proj.weight": attention.out.weight[0],
                    "out_proj.bias": attention.out.bias[0],
                }
                other.load_state_dict(state)
        norms = [block.own_norm, *([block.cross_norm] if hasattr(block, "cross_norm") else []), block.feed_norm]
        others = [getattr(layer, f"norm{i + 1}") for i in range(len(norms))]
        for ours, other in zip(
            [*norms, block.feed[0], block.feed[2]], [*others, layer.linear1, layer.linear2], strict=True
        ):
            other.load_state_dict({"weight": ours.weight[0], "bias": ours.bias[0]})
    plain.norm.load_state_dict({"weight": stack.norm.weight[0], "bias": stack.norm.bias[0]})


@pytest.mark.parametrize("name", NETWORKS)
def test_a_later_target_token_does_not_change_an_earlier_answer(name: str) -> None:
    network, other = fresh(name, position="t5_relative"), TARGET.clone()
    other[:, 2:] = 6
    before, after = network(SOURCE[None], TARGET[None]), network(SOURCE[None], other[None])
    assert torch.equal(before[:, :, :3], after[:, :, :3])
    assert not torch.allclose(before[:, :, 3], after[:, :, 3])


@pytest.mark.parametrize("name", NETWORKS)
def test_shared_layers_equal_as_many_copies_of_one(name: str) -> None:
    shared, item, many = fresh(name, shared=True, layers=3), fresh(name, layers=1), fresh(name, layers=3)
    assert count_parameters(shared) == count_parameters(item)
    weights = shared.state_dict()
    spread = {
        key: weights[key.replace(".blocks.1.", ".blocks.0.").replace(".blocks.2.", ".blocks.0.")]
        for key in many.state_dict()
    }
    many.load_state_dict(spread)
    assert torch.allclose(shared(SOURCE[None], TARGET[None]), many(SOURCE[None], TARGET[None]), rtol=0, atol=1e-12)
    assert shared.generate(SOURCE[None], 9).tolist() == many.generate(SOURCE[None], 9).tolist()


@pytest.mark.parametrize("name", NETWORKS)
def test_an_empty_source_is_answered_and_learned_from_with_finite_numbers(name: str) -> None:
    network, source = fresh(name, position="alibi"), SOURCE.clone()
    source[1] = PAD
    logits = network(source[None], TARGET[None])
    logits.square().sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(weight.grad).all() for weight in network.parameters())
    assert network.generate(source[None], 5).shape == (1, 3, 5)
    alone = network(source[None, 1:2, :1], TARGET[None, 1:2])
    assert torch.allclose(alone[0, 0], logits[0, 1], rtol=0, atol=1e-12)
    state = network.start(source[None, 1:2, :1])
    assert torch.allclose(network.step(state, torch.tensor([[BOS]]))[0][0], alone[0, :, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("settings", [{"dropout": 0.2}, {"position": "randomised"}], ids=["dropout", "randomised"])
@pytest.mark.parametrize("name", NETWORKS)
def test_training_is_noisy_and_evaluation_is_not(name: str, settings: dict[str, Any]) -> None:
    network, noise = fresh(name, **settings), Rng(make_keys(["a"]))
    attach_rng(network, noise)
    quiet = network(SOURCE[None], TARGET[None])
    noise.at(0)
    first = network(SOURCE[None], TARGET[None])
    noise.at(1)
    second = network(SOURCE[None], TARGET[None])
    noise.at(0)
    assert torch.equal(network(SOURCE[None], TARGET[None]), first)
    assert len({float(logits.detach().sum()) for logits in (quiet, first, second)}) == 3
    with noise.disabled():
        assert torch.equal(network(SOURCE[None], TARGET[None]), network(SOURCE[None], TARGET[None]))


@pytest.mark.parametrize("name", NETWORKS)
def test_queries_begin_like_keys(name: str) -> None:
    blocks = [module for module in fresh(name).modules() if type(module).__name__ == "Attention"]
    assert len(blocks) == {"transformer": 6, "decoder_transformer": 2}[name]
    assert all(torch.equal(block.query.weight, block.pair.weight[:, :16]) for block in blocks)


def test_settings_that_cannot_be_are_refused_in_one_line() -> None:
    with pytest.raises(ModelError, match="width = 15, heads = 2: width must be a multiple of heads"):
        fresh("transformer", width=15)
    with pytest.raises(ModelError, match="rope turns pairs of features"):
        fresh("transformer", width=6, position="rope")


@pytest.mark.parametrize("name", NETWORKS)
def test_it_learns_to_reverse_short_texts_and_writes_them(name: str) -> None:
    file = load_module("baselines/networks", name, "network")
    torch.manual_seed(0)
    network = file.Network(Sizes(8, source=8), file.SETTINGS | {"width": 32, "layers": 2, "feedforward": 64})
    source = torch.tensor(list(product(range(4, 8), repeat=3)))[None]
    target = F.pad(source.flip(-1), (0, 1), value=EOS)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for _ in range(100):
        optimiser.zero_grad()
        F.cross_entropy(network(source, target).flatten(0, -2), target.flatten()).backward()
        optimiser.step()
    assert torch.equal(network.generate(source, 6)[..., :4], target)
