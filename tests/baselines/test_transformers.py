"""The Transformers against torch.nn's own, alone against among many, and taught against decoded."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.decoding import shift_right
from farshift.baselines.encoding.encoding import BOS, EOS, PAD, UNKNOWN, Sizes
from farshift.baselines.replicas.rng import Rng, make_keys
from farshift.baselines.replicas.stacked import (
    attach_rng,
    count_parameters,
    count_replicas,
    select_replicas,
    stack_networks,
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


# Of the decoder alone, those encodings that padding before a row makes a difference to for each replica.
AMONG = [("transformer", position) for position in POSITIONS]
AMONG += [("decoder_transformer", position) for position in ("learned", "randomised")]


@pytest.mark.parametrize(("name", "position"), AMONG)
def test_a_replica_trained_among_three_equals_one_trained_alone(name: str, position: str) -> None:
    settings = {"position": position, "dropout": 0.1, "layers": 1}
    draw = torch.Generator().manual_seed(1)
    source, target = (torch.randint(4, 8, (10, 3, 6, length), generator=draw) for length in (5, 4))
    source[..., :3, 3:] = PAD

    def trained(which: list[int]) -> Any:
        network = stack_networks([fresh(name, seed, **settings) for seed in which])
        noise = Rng(make_keys([f"replica {seed}" for seed in which]))
        attach_rng(network, noise)
        optimiser = torch.optim.SGD(network.parameters(), lr=5e-3, momentum=0.9)
        for step in range(10):
            noise.at(step)
            optimiser.zero_grad()
            logits = network(source[step, which], target[step, which])
            F.cross_entropy(logits.flatten(0, -2), target[step, which].flatten(), reduction="sum").backward()
            optimiser.step()
        return network

    together = trained([0, 1, 2])
    assert count_replicas(together) == 3
    for replica in range(3):
        before, alone = fresh(name, replica, **settings).state_dict(), trained([replica]).state_dict()
        for key, among in select_replicas(together, [replica]).state_dict().items():
            assert torch.allclose(among, alone[key], rtol=0, atol=1e-12)
        assert (alone["head.weight"] - before["head.weight"]).abs().max() > 0.1


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_stepwise_logits_equal_those_of_teaching(name: str, position: str) -> None:
    network = stack_networks([fresh(name, seed, position=position) for seed in (0, 1)])
    with torch.no_grad():
        state, logits = network.start(twice(SOURCE)), []
        for token in shift_right(TARGET).T:
            item, state = network.step(state, twice(token))
            assert all(entry.shape[:2] == (2, 3) for entry in state.values())
            logits.append(item)
        taught = network(twice(SOURCE), twice(TARGET))
    assert torch.allclose(torch.stack(logits, dim=2), taught, rtol=0, atol=1e-12)
    assert not torch.allclose(taught[0], taught[1], atol=1e-2)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_row_does_not_depend_on_the_padding_beside_it(name: str, position: str) -> None:
    network = stack_networks([fresh(name, seed, aligned=True, position=position) for seed in (0, 1)])
    together, taught = network.generate(twice(SOURCE), 12), network(twice(SOURCE), twice(TARGET))
    for row, length in enumerate((5, 2, 3)):
        alone = twice(SOURCE[row : row + 1, :length])
        assert together[:, row, :length].tolist() == network.generate(alone, 12)[:, 0].tolist()
        assert (together[:, row, length:] == PAD).all()
        assert (together[:, row, :length] > UNKNOWN).all()
        assert torch.allclose(network(alone, twice(TARGET[row : row + 1]))[:, 0], taught[:, row], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_decoding_equals_reading_the_whole_prefix_again(name: str) -> None:
    network = stack_networks([fresh(name, seed, position="rope") for seed in (0, 1)])
    out = network.generate(twice(SOURCE), 12)
    assert out.shape == (2, 3, 12)
    with torch.no_grad():
        for end in range(1, 13):
            logits = network(twice(SOURCE), out[..., :end])[..., -1, :]
            logits[..., [PAD, BOS, UNKNOWN]] = -torch.inf
            ended = (out[..., : end - 1] == EOS).any(dim=-1)
            assert out[..., end - 1].tolist() == logits.argmax(dim=-1).masked_fill(ended, PAD).tolist()


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
def test_logits_are_the_head_of_the_features(name: str) -> None:
    network = fresh(name)
    features = network.features(SOURCE[None], TARGET[None])
    assert features.shape == (1, 3, 4, network.width)
    assert torch.equal(network.head(features), network(SOURCE[None], TARGET[None]))


@pytest.mark.parametrize("name", NETWORKS)
def test_queries_begin_like_keys(name: str) -> None:
    blocks = [module for module in fresh(name).modules() if type(module).__name__ == "Attention"]
    assert len(blocks) == {"transformer": 6, "decoder_transformer": 2}[name]
    assert all(torch.equal(block.query.weight, block.pair.weight[:, :16]) for block in blocks)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_saved_tensor_has_the_replica_as_its_first_axis(name: str) -> None:
    for position in POSITIONS:
        network = stack_networks([fresh(name, seed, position=position) for seed in range(3)])
        assert {len(tensor) for tensor in network.state_dict().values()} == {3}


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
