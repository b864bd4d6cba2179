"""Networks that read and write sequences: they learn tiny tasks, decode as they were taught, and stand side by side."""

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.decoding import decode_greedily, shift_right
from farshift.baselines.encoding.encoding import BOS, EOS, PAD, UNKNOWN, Sizes
from farshift.baselines.replicas.rng import Rng, make_keys
from farshift.baselines.replicas.stacked import attach_rng, count_parameters, select_replicas
from farshift.core.errors import ModelError
from farshift.core.plugins import find_files_by_name, load_module
from torch import Tensor, nn

from .side_by_side import built
from .toys import PARITY, TURN, accuracy, bits, commands, recipe, trained, words


def file_of(name: str) -> Any:
    """The file of a network; a variant's name goes on after a comma."""
    return load_module("baselines/networks", name.partition(",")[0], "network")


FAST: dict[str, Any] = {"lr": 0.01, "batch_size": 36, "clip": 1.0, "schedule": "linear", "warmup_percent": 10}
SMALL: dict[str, dict[str, Any]] = {
    "lstm": {"width": 12, "layers": 2},
    "gru": {"width": 12, "layers": 2},
    "elman": {"width": 12},
    "rnn": {"width": 12, "layers": 2, "cell": "lstm"},
    "syntactic_attention": {"meaning": 6, "syntax": 8},
    "syntactic_attention, one LSTM": {"meaning": 6, "syntax": 8, "second_lstm": False},
    "stack_rnn": {"width": 12, "cell": 3},
    "tape_rnn": {"width": 12, "cell": 3, "cells": 4},
    "lstm_aligned": {"width": 12, "bidirectional": True},
    "deep_thinking": {"width": 6, "blocks": 1, "iterations": 4, "iterations_per_token": 2},
    "message_passing, chain": {"width": 6, "graph": "chain"},
    "message_passing, full": {"width": 6, "graph": "full"},
}
TRANSFORMER: dict[str, Any] = {"width": 16, "heads": 2, "layers": 2, "feedforward": 32, "position_range": 64}
SMALL |= {
    f"{network}, {position}": TRANSFORMER | {"position": position}
    for network in ("transformer", "decoder_transformer")
    for position in sorted(find_files_by_name("baselines/positions", ".py"))
}
ALIGNED = [name for name in SMALL if file_of(name).TASK == "aligned"]
STEPWISE = [name for name in SMALL if name not in ALIGNED]
SOURCE = torch.tensor([[4, 5, 6, 7, 8], [8, 4, PAD, PAD, PAD], [5, 5, 5, PAD, PAD]])
TARGET = torch.tensor([[4, 5, 6, 7, 5], [7, 7, 4, EOS, PAD], [5, EOS, PAD, PAD, PAD]])


def make(name: str, aligned: bool = False, **settings: Any) -> Any:
    """An untrained network over 9 source and 8 output words, with weights large enough to be opinionated."""
    file = file_of(name)
    network = file.Network(Sizes(8, source=9, aligned=aligned), file.SETTINGS | SMALL[name] | settings)
    for weight in network.parameters():
        weight.data.mul_(1.5)
    return network


def twice(x: Tensor) -> Tensor:
    """The same rows for each of two replicas."""
    return x.expand(2, *x.shape)


@pytest.mark.parametrize("name", STEPWISE)
def test_decoding_with_a_memory_equals_reading_the_whole_prefix_again(name: str) -> None:
    network = built(lambda: make(name), 2)
    out = network.generate(twice(SOURCE), 12)
    assert out.shape == (2, 3, 12)
    with torch.no_grad():
        for end in range(1, 13):
            logits = network(twice(SOURCE), out[..., :end])[:, :, -1]
            logits[..., [PAD, BOS, UNKNOWN]] = -torch.inf
            ended = (out[..., : end - 1] == EOS).any(dim=-1)
            assert torch.equal(out[..., end - 1], logits.argmax(dim=-1).masked_fill(ended, PAD))


@pytest.mark.parametrize("name", STEPWISE)
def test_stepwise_logits_equal_those_of_teaching(name: str) -> None:
    network = built(lambda: make(name), 2)
    with torch.no_grad():
        state, logits = network.start(twice(SOURCE)), []
        for token in shift_right(twice(TARGET)).unbind(-1):
            item, state = network.step(state, token)
            logits.append(item)
        expected = network(twice(SOURCE), twice(TARGET))
    assert torch.allclose(torch.stack(logits, dim=2), expected, rtol=0, atol=1e-12)
    assert all(value.shape[:2] == (2, 3) for value in state.values())


@pytest.mark.parametrize("name", SMALL)
def test_a_row_does_not_depend_on_the_padding_beside_it(name: str) -> None:
    network = built(lambda: make(name, aligned=True), 2)
    together, logits = network.generate(twice(SOURCE), 12), network(twice(SOURCE), twice(TARGET))
    for row, length in zip(range(3), (5, 2, 3), strict=True):
        alone = SOURCE[row : row + 1, :length]
        assert torch.equal(together[:, row, :length], network.generate(twice(alone), 12)[:, 0])
        assert (together[:, row, length:] == PAD).all()
        assert (together[:, row, :length] > UNKNOWN).all()
        expected = network(twice(alone), twice(TARGET[row : row + 1, :length]))[:, 0]
        assert torch.allclose(logits[:, row, :length], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_every_saved_tensor_has_the_replica_as_its_first_axis(name: str) -> None:
    network = built(lambda: make(name), 2)
    assert {len(value) for value in network.state_dict().values()} == {2}
    second = select_replicas(network, [1])
    out = second(SOURCE[None], TARGET[None])
    assert torch.allclose(out[0], network(twice(SOURCE), twice(TARGET))[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_logits_are_the_head_of_the_features(name: str) -> None:
    network = built(lambda: make(name), 2)
    features = network.features(twice(SOURCE), twice(TARGET))
    assert torch.equal(network(twice(SOURCE), twice(TARGET)), network.head(features))
    assert features.shape == (2, 3, 5, network.head.weight.shape[-1])


@pytest.mark.parametrize("name", SMALL)
def test_an_empty_source_is_answered_and_learned_from_with_finite_numbers(name: str) -> None:
    network = built(lambda: make(name), 1)
    source = torch.tensor([[[PAD, PAD], [4, 5]]])
    network(source, TARGET[None, :2, :2]).square().sum().backward()
    assert all(weight.grad.isfinite().all() for weight in network.parameters())
    assert network.generate(source, 3).shape[:2] == (1, 2)


class Scripted:
    """Writes row r's script of each replica, one token a step, whatever it reads; counts the rows it is asked for."""

    def __init__(self, scripts: list[list[list[int]]]) -> None:
        self.scripts = torch.tensor(scripts)
        self.asked: list[int] = []

    def start(self, source: Tensor) -> dict[str, Tensor]:
        return {"script": self.scripts, "place": torch.zeros(source.shape[:2], dtype=torch.int64)}

    def step(self, state: dict[str, Tensor], token: Tensor) -> Any:
        self.asked.append(token.shape[1])
        now = state["script"].gather(2, state["place"][..., None])[..., 0]
        return F.one_hot(now, 8).float(), state | {"place": state["place"] + 1}


def test_rows_that_end_in_every_replica_leave_the_batch_and_keep_their_place() -> None:
    first = [[4, EOS, 7, 7, 7, 7], [5, 5, 5, 5, EOS, 7], [EOS, 7, 7, 7, 7, 7], [6, 6, EOS, 7, 7, 7], [7] * 6]
    second = [
        [4, 4, 4, EOS, 7, 7],
        [5, EOS, 7, 7, 7, 7],
        [6, EOS, 7, 7, 7, 7],
        [EOS, 7, 7, 7, 7, 7],
        [5, 5, EOS, 7, 7, 7],
    ]
    network = Scripted([first, second])
    out = decode_greedily(network, torch.full((2, 5, 1), 4), limit=6)
    assert out.tolist() == [
        [[4, EOS, 0, 0, 0, 0], [5, 5, 5, 5, EOS, 0], [EOS, 0, 0, 0, 0, 0], [6, 6, EOS, 0, 0, 0], [7, 7, 7, 7, 7, 7]],
        [[4, 4, 4, EOS, 0, 0], [5, EOS, 0, 0, 0, 0], [6, EOS, 0, 0, 0, 0], [EOS, 0, 0, 0, 0, 0], [5, 5, EOS, 0, 0, 0]],
    ]
    assert network.asked == [5, 5, 5, 5, 2, 1]


def test_an_aligned_row_is_as_long_as_its_source_in_each_replica() -> None:
    network = Scripted([[[5] * 4, [6] * 4], [[7] * 4, [5] * 4]])
    source = torch.tensor([[[4, 4, 4, 4], [4, PAD, PAD, PAD]], [[4, 4, PAD, PAD], [4, 4, 4, PAD]]])
    out = decode_greedily(network, source, limit=1, aligned=True)
    assert out.tolist() == [[[5, 5, 5, 5], [6, 0, 0, 0]], [[7, 7, 0, 0], [5, 5, 5, 0]]]


@pytest.mark.parametrize("name", SMALL)
def test_no_rows_are_decoded_to_no_rows(name: str) -> None:
    out = built(lambda: make(name), 2).generate(torch.zeros(2, 0, 3, dtype=torch.int64), 4)
    assert out.shape[:2] == (2, 0)


LEARNS = {
    "lstm": (recipe("lstm", 120, width=32, **FAST), TURN, commands()),
    "lstm_aligned": (recipe("lstm_aligned", 150, width=32, **FAST), PARITY, bits(200, 10)),
}


@cache
def learned(name: str) -> Any:
    return trained(*LEARNS[name])


@pytest.mark.parametrize("name", LEARNS)
def test_a_network_learns_a_tiny_task(name: str) -> None:
    _, task, rows = LEARNS[name]
    assert accuracy(learned(name), task, rows) == 1.0


def test_a_transducer_of_parity_holds_at_eight_times_the_length() -> None:
    assert accuracy(learned("lstm_aligned"), PARITY, bits(50, 80)) == 1.0


def test_texts_come_back_in_the_order_asked_whatever_their_lengths() -> None:
    rows, order = commands(), np.random.default_rng(0).permutation(36)
    requested = learned("lstm").predict({"command": rows.columns["command"][order]})
    assert requested == rows.columns["actions"][order].tolist()
    assert learned("lstm").predict({"command": words([])}) == []


def test_a_word_unseen_in_training_does_not_stop_a_prediction() -> None:
    model = trained(recipe("lstm", 2), TURN, commands())
    assert len(model.predict({"command": words(["fly left", "walk", ""])})) == 3


def test_a_network_for_another_task_says_so() -> None:
    with pytest.raises(ModelError, match="lstm_aligned is for aligned tasks"):
        trained(recipe("lstm_aligned", 1), TURN, commands())
    with pytest.raises(ModelError, match="mlp is for classification and regression tasks"):
        trained(recipe("mlp", 1), TURN, commands())


NETWORKS = ["transformer", "decoder_transformer"]

TARGET_TRANSFORMERS = torch.tensor([[4, 5, 6, 7], [7, 7, 4, EOS], [5, EOS, PAD, PAD]])


def fresh(name: str, seed: int = 0, aligned: bool = False, **settings: Any) -> Any:
    """A small untrained network of one replica in float64, with weights large enough to be opinionated."""
    file = load_module("baselines/networks", name, "network")
    torch.manual_seed(seed)
    network = file.Network(Sizes(8, source=9, aligned=aligned), file.SETTINGS | TRANSFORMER | settings).double()
    for weight in network.parameters():
        weight.data.mul_(1.5)
    return network


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
    x = 4 * wrote[shift_right(TARGET_TRANSFORMERS)] + order[:4]
    later = nn.Transformer.generate_square_subsequent_mask(4, dtype=torch.float64)
    features = decoder(x, memory, tgt_mask=later, memory_key_padding_mask=SOURCE == PAD)
    expected = F.linear(features, network.head.weight[0], network.head.bias[0])

    result = network(SOURCE[None], TARGET_TRANSFORMERS[None])
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
    result = network(SOURCE[None], TARGET_TRANSFORMERS[None])[0]
    for row, (source, target) in enumerate(zip(SOURCE, TARGET_TRANSFORMERS, strict=True)):
        source = source[source != PAD]
        x = 4 * torch.cat([network.read.weight[0, source], network.wrote.weight[0, shift_right(target)]])
        later = nn.Transformer.generate_square_subsequent_mask(len(x), dtype=torch.float64)
        features = plain((x + _sinusoids(len(x)))[None], mask=later)[0, len(source) :]
        expected = F.linear(features, network.head.weight[0], network.head.bias[0])
        assert torch.allclose(result[row], expected, rtol=0, atol=1e-12)


def _sinusoids(count: int) -> Tensor:
    """Those of the first `count` places, 16 wide."""
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
    network, other = fresh(name, position="t5_relative"), TARGET_TRANSFORMERS.clone()
    other[:, 2:] = 6
    before, after = network(SOURCE[None], TARGET_TRANSFORMERS[None]), network(SOURCE[None], other[None])
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
    assert torch.allclose(
        shared(SOURCE[None], TARGET_TRANSFORMERS[None]),
        many(SOURCE[None], TARGET_TRANSFORMERS[None]),
        rtol=0,
        atol=1e-12,
    )
    assert shared.generate(SOURCE[None], 9).tolist() == many.generate(SOURCE[None], 9).tolist()


@pytest.mark.parametrize("name", NETWORKS)
def test_an_empty_source_is_answered_the_same_alone_and_step_by_step(name: str) -> None:
    network, source = fresh(name, position="alibi"), SOURCE.clone()
    source[1] = PAD
    logits = network(source[None], TARGET_TRANSFORMERS[None])
    logits.square().sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(weight.grad).all() for weight in network.parameters())
    assert network.generate(source[None], 5).shape == (1, 3, 5)
    alone = network(source[None, 1:2, :1], TARGET_TRANSFORMERS[None, 1:2])
    assert torch.allclose(alone[0, 0], logits[0, 1], rtol=0, atol=1e-12)
    state = network.start(source[None, 1:2, :1])
    assert torch.allclose(network.step(state, torch.tensor([[BOS]]))[0][0], alone[0, :, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("settings", [{"dropout": 0.2}, {"position": "randomised"}], ids=["dropout", "randomised"])
@pytest.mark.parametrize("name", NETWORKS)
def test_training_is_noisy_and_evaluation_is_not(name: str, settings: dict[str, Any]) -> None:
    network, noise = fresh(name, **settings), Rng(make_keys(["a"]))
    attach_rng(network, noise)
    quiet = network(SOURCE[None], TARGET_TRANSFORMERS[None])
    noise.at(0)
    first = network(SOURCE[None], TARGET_TRANSFORMERS[None])
    noise.at(1)
    second = network(SOURCE[None], TARGET_TRANSFORMERS[None])
    noise.at(0)
    assert torch.equal(network(SOURCE[None], TARGET_TRANSFORMERS[None]), first)
    assert len({float(logits.detach().sum()) for logits in (quiet, first, second)}) == 3
    with noise.disabled():
        assert torch.equal(
            network(SOURCE[None], TARGET_TRANSFORMERS[None]), network(SOURCE[None], TARGET_TRANSFORMERS[None])
        )


@pytest.mark.parametrize("name", NETWORKS)
def test_queries_begin_like_keys(name: str) -> None:
    blocks = [module for module in fresh(name).modules() if type(module).__name__ == "Attention"]
    assert len(blocks) == {"transformer": 6, "decoder_transformer": 2}[name]
    assert all(torch.equal(block.query.weight, block.pair.weight[:, :16]) for block in blocks)


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
