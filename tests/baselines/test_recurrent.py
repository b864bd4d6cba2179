"""Recurrent layers are torch's with packed sequences, for many replicas, and their hand-written gradients are right."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from farshift.baselines.layers import recurrence
from farshift.baselines.layers.recurrent import GRU, LSTM, Elman, Recurrent
from farshift.baselines.networks._initial import initialise_recurrent
from farshift.baselines.replicas.rng import Rng, make_keys
from farshift.baselines.replicas.stacked import attach_rng, stack_networks
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_that_can_be_differentiated_equals_the_hand_written_one(kind: str) -> None:
    given, function = inputs(kind), getattr(recurrence, kind)
    plain = torch.autograd.grad(function(*given)[0].square().sum(), given)
    again = torch.autograd.grad(function(*given)[0].square().sum(), given, create_graph=True)
    assert all(close(a, b) for a, b in zip(plain, again, strict=True))
    assert not plain[0].requires_grad
    assert again[0].requires_grad


def test_a_tensor_given_as_hidden_state_and_cell_gets_both_gradients_once() -> None:
    x, into, again, bias, h, _ = inputs("lstm")
    item = torch.autograd.grad(recurrence.lstm(x, into, again, bias, h, h)[0].sum(), h, create_graph=True)[0]
    h_, c_ = h.detach().requires_grad_(), h.detach().requires_grad_()
    apart = torch.autograd.grad(recurrence.lstm(x, into, again, bias, h_, c_)[0].sum(), [h_, c_])
    assert close(item, apart[0] + apart[1])


def test_an_lstm_of_which_only_the_cells_are_used_has_their_gradient() -> None:
    given = inputs("lstm")
    result = torch.autograd.grad(recurrence.lstm(*given)[1].sum(), given)
    expected = torch.autograd.grad(recurrence.lstm_by_steps(*given)[1].sum(), given)
    assert all(close(a, b) for a, b in zip(result, expected, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_a_backward_pass_can_be_run_twice(kind: str) -> None:
    given = inputs(kind)
    out = getattr(recurrence, kind)(*given)[0].sum()
    once = torch.autograd.grad(out, given, retain_graph=True)
    twice = torch.autograd.grad(out, given)
    assert all(torch.equal(a, b) for a, b in zip(once, twice, strict=True))


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
