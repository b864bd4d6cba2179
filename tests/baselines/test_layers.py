"""Layers with a replica axis are those of torch.nn: affine maps, ghost batches, recurrent layers and memories."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import BOS, EOS, PAD, Sizes
from farshift.baselines.layers import recurrence
from farshift.baselines.layers.linear import Linear
from farshift.baselines.layers.norm import BatchNorm
from farshift.baselines.layers.recurrent import GRU, LSTM, Elman, Recurrent, initialise_recurrent
from farshift.baselines.networks import resnet
from farshift.baselines.networks.syntactic_attention import SETTINGS, Network
from farshift.baselines.replicas.rng import Rng, make_keys
from farshift.baselines.replicas.stacked import attach_rng, stack_networks
from farshift.core.plugins import load_module
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .side_by_side import built


def case(bias: bool, axes: tuple[int, ...] = (5,)) -> tuple[Linear, list[nn.Linear], Tensor]:
    """Three replicas, the same of torch.nn, and inputs."""
    torch.manual_seed(0)
    ours = stack_networks([Linear(4, 3, bias).double() for _ in range(3)])
    theirs = []
    for position in range(3):
        plain = nn.Linear(4, 3, bias).double()
        plain.load_state_dict({name: value[position] for name, value in ours.state_dict().items()})
        theirs.append(plain)
    return ours, theirs, torch.randn(3, *axes, 4, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("axes", [(5,), (2, 5), (2, 3, 5), (0,)])
@pytest.mark.parametrize("bias", [True, False])
def test_outputs_and_gradients_are_those_of_torch_nn(bias: bool, axes: tuple[int, ...]) -> None:
    ours, theirs, x = case(bias, axes)
    own = x.detach().clone().requires_grad_()
    out = ours(x)
    expected = torch.stack([layer(part) for layer, part in zip(theirs, own, strict=True)])
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-14)
    out.sin().sum().backward()
    expected.sin().sum().backward()
    torch.testing.assert_close(x.grad, own.grad, rtol=0, atol=1e-14)
    for position, layer in enumerate(theirs):
        for mine, other in zip(ours.parameters(), layer.parameters(), strict=True):
            torch.testing.assert_close(mine.grad[position], other.grad, rtol=0, atol=1e-13)  # type: ignore[index]


@pytest.mark.parametrize("bias", [True, False])
def test_first_and_second_derivatives_are_those_of_finite_differences(bias: bool) -> None:
    ours, _, x = case(bias)
    parameters = tuple(ours.parameters())

    def output(x: Tensor, *given: Tensor) -> Tensor:
        named = dict(zip((name for name, _ in ours.named_parameters()), given, strict=True))
        result: Tensor = torch.func.functional_call(ours, named, x)
        return result

    assert torch.autograd.gradcheck(output, (x, *parameters))
    assert torch.autograd.gradgradcheck(output, (x, *parameters))


def test_a_gradient_lies_as_its_weight_does() -> None:
    ours, _, x = case(True)
    (result,) = torch.autograd.grad(ours(x).square().sum(), [ours.weight])
    assert result.stride() == ours.weight.stride()


def test_a_frozen_weight_has_no_gradient_and_lets_its_inputs_have_one() -> None:
    ours, _, x = case(True)
    ours.weight.requires_grad_(False)
    ours(x).sum().backward()
    assert ours.weight.grad is None
    assert ours.bias.grad is not None  # type: ignore[union-attr]
    assert x.grad is not None


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


def test_a_resnet_passes_the_rows_of_a_ghost_batch_to_all_its_layers() -> None:
    sizes = Sizes(2, numbers=64, shape=(8, 8))
    created = resnet.Network(sizes, {"widths": [4, 8], "activation": "gelu", "ghost": 16})
    assert {item.ghost for item in created.modules() if isinstance(item, BatchNorm)} == {16}


KINDS: dict[str, tuple[type[Recurrent], type[nn.RNNBase]]] = {
    "lstm": (LSTM, nn.LSTM),
    "gru": (GRU, nn.GRU),
    "elman": (Elman, nn.RNN),
}
LENGTHS = torch.tensor([5, 1, 7, 3])


def made(kind: str, replicas: int = 1, **settings: Any) -> Recurrent:
    torch.manual_seed(0)
    return stack_networks([KINDS[kind][0](3, 4, **settings).double() for _ in range(replicas)])


def ours_in_their_order(weight: Tensor, kind: str) -> Tensor:
    """Gates along the last axis as torch has them: input, forget, candidate, output of an LSTM."""
    if kind != "lstm":
        return weight
    candidate, into, forget, out = weight.chunk(4, dim=-1)
    return torch.cat([into, forget, candidate, out], dim=-1)


def theirs(kind: str, ours: Recurrent, replica: int = 0) -> nn.RNNBase:
    """torch's network with one replica's weights."""
    layers, directions = len(ours.layers), ours.layers[0].directions
    built = KINDS[kind][1](3, 4, layers, batch_first=True, bidirectional=directions == 2).double()
    for position, layer in enumerate(ours.layers):
        for way in range(directions):
            name = f"l{position}" + "_reverse" * way
            bias = layer.bias[replica, way].detach()
            inside = torch.zeros(3 * 4).double() if kind == "gru" else torch.zeros_like(bias)
            if kind == "gru":
                inside[8:] = bias[12:]
            values = {
                "weight_ih": ours_in_their_order(layer.into[replica, way].detach(), kind).T,
                "weight_hh": ours_in_their_order(layer.again[replica, way].detach(), kind).T,
                "bias_ih": bias[:12] if kind == "gru" else ours_in_their_order(bias, kind),
                "bias_hh": inside,
            }
            for part, value in values.items():
                getattr(built, f"{part}_{name}").data.copy_(value)
    return built


def close(a: Tensor, b: Tensor) -> bool:
    return bool((a - b).abs().max() < 1e-12)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_states_and_gradients_equal_torchs_with_packed_sequences(kind: str, bidirectional: bool) -> None:
    ours = made(kind, 2, layers=2, bidirectional=bidirectional)
    x = torch.randn(2, 4, 7, 3, dtype=torch.float64, requires_grad=True)
    out, states = ours(x, LENGTHS.expand(2, 4))
    weigh = [torch.randn_like(part) for part in (out, *states)]
    gradients = torch.autograd.grad(
        sum((part * weight).sum() for part, weight in zip((out, *states), weigh, strict=True)), [x, *ours.parameters()]
    )
    for replica in range(2):
        built, alone = theirs(kind, ours, replica), x[replica].detach().requires_grad_()
        packed, after = built(pack_padded_sequence(alone, LENGTHS, batch_first=True, enforce_sorted=False))
        expected = pad_packed_sequence(packed, batch_first=True, total_length=7)[0]
        layered = [
            part.unflatten(0, (2, -1)).permute(2, 0, 1, 3).flatten(2)
            for part in (after if kind == "lstm" else (after,))
        ]
        assert close(out[replica], expected)
        assert all(close(a[replica], b) for a, b in zip(states, layered, strict=True))
        scored = zip((expected, *layered), weigh, strict=True)
        sum((part * weight[replica]).sum() for part, weight in scored).backward()  # type: ignore[union-attr]
        assert close(gradients[0][replica], alone.grad)  # type: ignore[arg-type]
        result = dict(zip((name for name, _ in ours.named_parameters()), gradients[1:], strict=True))
        for position in range(2):
            for way in range(1 + bidirectional):
                name = f"l{position}" + "_reverse" * way
                for own, other in (("into", "weight_ih"), ("again", "weight_hh")):
                    gradient = ours_in_their_order(result[f"layers.{position}.{own}"][replica, way], kind).T
                    assert close(gradient, getattr(built, f"{other}_{name}").grad)
                bias = result[f"layers.{position}.bias"][replica, way]
                theirs_ = getattr(built, f"bias_ih_{name}").grad
                assert close(ours_in_their_order(bias[: len(theirs_)], kind), theirs_)
                if kind == "gru":
                    assert close(bias[12:], getattr(built, f"bias_hh_{name}").grad[8:])


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_may_be_read_in_two_halves_with_the_state_between(kind: str) -> None:
    ours, x = made(kind, layers=2), torch.randn(1, 4, 6, 3, dtype=torch.float64)
    full, end = ours(x)
    first, between = ours(x[:, :, :2])
    second, after = ours(x[:, :, 2:], states=between)
    assert close(torch.cat([first, second], dim=2), full)
    assert all(close(a, b) for a, b in zip(after, end, strict=True))


def test_without_lengths_every_step_counts_in_both_directions() -> None:
    ours, x = made("lstm", bidirectional=True), torch.randn(1, 4, 6, 3, dtype=torch.float64)
    every = ours(x, torch.full((1, 4), 6))
    assert all(close(a, b) for a, b in zip((ours(x)[0], *ours(x)[1]), (every[0], *every[1]), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_no_output_and_outputs_after_the_end_are_zero(kind: str) -> None:
    ours = made(kind, layers=2, bidirectional=True)
    x = torch.randn(1, 4, 7, 3, dtype=torch.float64)
    out, states = ours(x, LENGTHS[None])
    for row, length in enumerate(LENGTHS.tolist()):
        alone, ended = ours(x[:, row : row + 1, :length], LENGTHS[None, row : row + 1])
        assert close(out[:, row, :length], alone[:, 0])
        assert all(close(a[:, row], b[:, 0]) for a, b in zip(states, ended, strict=True))
        assert (out[:, row, length:] == 0).all()


def inputs(kind: str) -> list[Tensor]:
    torch.manual_seed(0)
    weights, biases, states = {"lstm": (4, 4, 2), "gru": (3, 4, 1), "elman": (1, 1, 1)}[kind]
    shapes = [(2, 3, 2, 3), (2, 3, weights * 2), (2, 2, weights * 2), (2, biases * 2), *[(2, 2, 2)] * states]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("kind", KINDS)
def test_first_and_second_derivatives_equal_finite_differences(kind: str) -> None:
    function = getattr(recurrence, kind)
    assert torch.autograd.gradcheck(function, inputs(kind))
    assert torch.autograd.gradgradcheck(function, inputs(kind))


def test_a_tensor_given_as_hidden_state_and_cell_gets_both_gradients_once() -> None:
    x, into, again, bias, h, _ = inputs("lstm")
    item = torch.autograd.grad(recurrence.lstm(x, into, again, bias, h, h)[0].sum(), h, create_graph=True)[0]
    h_, c_ = h.detach().requires_grad_(), h.detach().requires_grad_()
    apart = torch.autograd.grad(recurrence.lstm(x, into, again, bias, h_, c_)[0].sum(), [h_, c_])
    assert close(item, apart[0] + apart[1])


def test_dropout_lies_between_layers_and_only_while_there_is_noise() -> None:
    x = torch.randn(1, 4, 6, 3, dtype=torch.float64)
    noisy, still = made("lstm", layers=2, dropout=0.5), made("lstm", layers=2)
    noise = Rng(make_keys(["a"]))
    attach_rng(noisy, noise)
    assert torch.equal(noisy(x)[0], still(x)[0])
    noise.at(1)
    (out, (h, _)), (expected, (first, _)) = noisy(x), still(x)
    assert not torch.equal(out, expected)
    assert torch.equal(h[:, :, 0], first[:, :, 0])


def test_recurrent_weights_are_orthogonal_gate_by_gate_and_forget_gates_open() -> None:
    network = LSTM(3, 8, 2, bidirectional=True)
    before = [layer.bias.detach().clone() for layer in network.layers]  # type: ignore[operator]
    initialise_recurrent(network)
    for layer, bias in zip(network.layers, before, strict=True):
        gates = layer.again[0].detach().unflatten(-1, (4, 8)).transpose(1, 2)  # type: ignore[index]
        assert torch.allclose(gates @ gates.transpose(-1, -2), torch.eye(8).expand(2, 4, 8, 8), atol=1e-5)
        moved = (layer.bias - bias).unflatten(-1, (4, 8)).mean(dim=-1)  # type: ignore[operator]
        assert torch.allclose(moved, torch.tensor([0.0, 0.0, 1.0, 0.0]).expand(1, 2, 4))


STACK, TAPE = (load_module("baselines/networks", name, "network") for name in ("stack_rnn", "tape_rnn"))
REPLICAS_MEMORY, ROWS, STEPS, CELL = 2, 3, 40, 2


def drawn(actions: int) -> tuple[Tensor, Tensor]:
    """Actions (steps, K, n) and values (steps, K, n, cell)."""
    torch.manual_seed(actions)
    chosen = torch.randint(0, actions, (STEPS, REPLICAS_MEMORY, ROWS))
    return chosen, torch.randn(STEPS, REPLICAS_MEMORY, ROWS, CELL, dtype=torch.float64)


def test_certain_actions_make_the_soft_stack_a_stack() -> None:
    chosen, values = drawn(3)
    soft = torch.zeros(REPLICAS_MEMORY, ROWS, 1, CELL, dtype=torch.float64)
    plain: dict[tuple[int, int], list[list[float]]] = {at: [] for at in np.ndindex(REPLICAS_MEMORY, ROWS)}
    for action, value in zip(chosen, values, strict=True):
        soft = STACK.push_and_pop(soft, F.one_hot(action, 3).double(), value)
        for at, stack in plain.items():
            match int(action[at]):
                case 1:
                    stack.insert(0, value[at].tolist())
                case 2:
                    del stack[:1]
            assert soft[at][: len(stack)].tolist() == stack
            assert (soft[at][len(stack) :] == 0).all()
    assert max(map(len, plain.values())) > 3


@pytest.mark.parametrize("jumps", [False, True])
def test_certain_actions_make_the_soft_tape_a_circle_under_a_head(jumps: bool) -> None:
    count = 5 if jumps else 3
    chosen, values = drawn(count)
    lengths = torch.tensor([[1, 3, 6], [0, 4, 2]])
    room, around = 13, (2 * lengths + 1).clamp(min=7)
    moves = TAPE.compute_moves(lengths, 7, room, jumps)
    soft = torch.zeros(REPLICAS_MEMORY, ROWS, room, CELL, dtype=torch.float64)
    tapes = {at: [[0.0] * CELL for _ in range(int(around[at]))] for at in np.ndindex(REPLICAS_MEMORY, ROWS)}
    heads = dict.fromkeys(tapes, 0)
    for action, value in zip(chosen, values, strict=True):
        soft = TAPE.write_and_move(soft, moves, F.one_hot(action, count).double(), value)
        for at, tape in tapes.items():
            tape[heads[at]] = value[at].tolist()
            length = int(lengths[at])
            heads[at] = (heads[at] + [0, 1, -1, length, -length][int(action[at])]) % len(tape)
            assert soft[at][: len(tape)].tolist() == tape[heads[at] :] + tape[: heads[at]]
            assert (soft[at][len(tape) :] == 0).all()


def test_shares_of_actions_mix_what_each_would_have_made() -> None:
    torch.manual_seed(0)
    value, shares = torch.randn(1, 2, CELL).double(), torch.rand(1, 2, 5).double().softmax(dim=-1)
    stack, tape = torch.randn(1, 2, 4, CELL).double(), torch.randn(1, 2, 7, CELL).double()
    moves = TAPE.compute_moves(torch.tensor([[2, 3]]), 5, 7, jumps=True)
    few = shares[..., :3] / shares[..., :3].sum(dim=-1, keepdim=True)
    for result, certain, weights in (
        (STACK.push_and_pop(stack, few, value), lambda one: STACK.push_and_pop(stack, one, value), few),
        (
            TAPE.write_and_move(tape, moves, shares, value),
            lambda one: TAPE.write_and_move(tape, moves, one, value),
            shares,
        ),
    ):
        ones = torch.eye(weights.shape[-1]).double()
        expected = sum(weights[..., a, None, None] * certain(item.expand_as(weights)) for a, item in enumerate(ones))
        assert torch.allclose(result, expected, rtol=0, atol=1e-12)  # type: ignore[arg-type]


def test_the_stack_holds_as_much_as_was_read_and_the_tape_twice_that() -> None:
    sizes, source = Sizes(8, source=9), torch.full((1, 2, 50), 5)
    stack = STACK.Network(sizes, STACK.SETTINGS | {"width": 4}).start(source)["memory"]
    tape = TAPE.Network(sizes, TAPE.SETTINGS | {"width": 4}).start(source)["memory"]
    assert stack.shape == (1, 2, 51, 8)
    assert tape.shape == (1, 2, 101, 8)
    assert TAPE.Network(sizes, TAPE.SETTINGS | {"width": 4}).start(source[..., :3])["memory"].shape == (1, 2, 40, 8)


def test_what_is_taught_tells_a_machine_nothing_of_its_answer() -> None:
    network: Any = STACK.Network(Sizes(8, source=9), STACK.SETTINGS | {"width": 4})
    source = torch.randint(4, 9, (1, 2, 5))
    assert torch.equal(network(source, torch.full((1, 2, 4), 5)), network(source, torch.full((1, 2, 4), 6)))


SOURCE = torch.tensor([[4, 5, 6, 7, 8], [8, 4, PAD, PAD, PAD], [5, 5, 5, PAD, PAD], [PAD] * 5])
STEPS_SYNTAX = 7


def make_syntactic(**settings: Any) -> Network:
    network = Network(Sizes(8, source=9), SETTINGS | {"meaning": 6, "syntax": 8} | settings)
    nn.init.normal_(network.syntax.weight)
    return network


def as_torch_lstm(ours: Any, replica: int) -> nn.LSTM:
    """torch's LSTM with one replica's weights."""
    (layer,) = ours.layers
    result = nn.LSTM(layer.into.shape[2], layer.width, bidirectional=layer.directions == 2).double()
    for way in range(layer.directions):
        name = "l0" + "_reverse" * way
        getattr(result, f"weight_ih_{name}").data.copy_(ours_in_their_order(layer.into[replica, way], "lstm").T)
        getattr(result, f"weight_hh_{name}").data.copy_(ours_in_their_order(layer.again[replica, way], "lstm").T)
        getattr(result, f"bias_ih_{name}").data.copy_(ours_in_their_order(layer.bias[replica, way], "lstm"))
        getattr(result, f"bias_hh_{name}").data.zero_()
    return result


def as_published(network: Any, replica: int, words: list[int]) -> Tensor:
    """Logits (STEPS, words out) of one row: equations 1-6, with what the released code adds to them."""
    ids = torch.tensor([BOS, *words, EOS])
    meanings, embedded = network.meaning.weight[replica, ids], network.syntax.weight[replica, ids]
    context, _ = as_torch_lstm(network.encoder, replica)(embedded)
    before, after = context.chunk(2, dim=-1)
    none = torch.zeros_like(before[:1])
    around = torch.cat([torch.cat([none, before[:-1]]), torch.cat([after[1:], none])], dim=-1)
    ends = network.ends.weight[replica]
    roles, (last, _) = as_torch_lstm(network.second, replica)(torch.cat([ends[:1], around[1:-1], ends[1:]]))
    control = torch.relu(network.first.weight[replica] @ last.flatten() + network.first.bias[replica])
    decoder, states, logits = as_torch_lstm(network.decoder, replica), None, []
    for _ in range(STEPS_SYNTAX):
        weights = (roles @ control).softmax(dim=0)
        logits.append(network.head.weight[replica] @ (weights @ meanings) + network.head.bias[replica])
        (control,), states = decoder((weights @ roles)[None], states)
    return torch.stack(logits)


def test_each_row_of_each_replica_is_that_of_the_released_network() -> None:
    network = built(make_syntactic, 2)
    with torch.no_grad():
        ours = network(SOURCE.expand(2, 4, 5), torch.full((2, 4, STEPS_SYNTAX), 4))
        for replica in range(2):
            for row, words in enumerate(SOURCE.tolist()):
                expected = as_published(network, replica, [word for word in words if word != PAD])
                assert (ours[replica, row] - expected).abs().max() < 1e-12
    assert (ours[0] - ours[1]).abs().max() > 0.1


@pytest.mark.parametrize("second", [False, True])
def test_the_second_lstm_lets_a_word_into_its_own_role_by_way_of_its_neighbours(second: bool) -> None:
    network, position = built(lambda: make_syntactic(second_lstm=second), 1), int(second)
    with torch.no_grad():
        item, other = (network.start(torch.tensor([[[word, 6, 7]]]))["roles"][0, 0] for word in (4, 5))
        alone, instead = (network.start(torch.tensor([[[word]]]))["roles"][0, 0] for word in (4, 5))
    assert torch.equal(item[position], other[position]) is not second
    assert torch.equal(alone[position], instead[position]), "it has no neighbours"
