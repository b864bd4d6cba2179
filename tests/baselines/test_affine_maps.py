"""The affine map of stacked replicas, whose gradients are written by hand, beside torch.nn.Linear."""

from __future__ import annotations

import pytest
import torch
from farshift.baselines.layers.linear import Linear
from farshift.baselines.replicas.stacked import stack_networks
from torch import Tensor, nn


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
