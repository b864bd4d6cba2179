"""How stacked parameters move: torch's own optimisers and the papers', clipping, sharp steps and schedules."""

from typing import Any

import pytest
import torch
from farshift.baselines.layers.hidden import is_hidden, mark_hidden
from farshift.baselines.optimisers.muon import orthogonalise_matrices
from farshift.baselines.recipe import find_plugin_files, read_settings
from farshift.baselines.replicas.hyperparameters import Hyperparameters
from farshift.baselines.training.optimiser_step import OptimiserStep
from farshift.core.plugins import load_module
from torch import Tensor, nn

from .plain_loops import OPTIMISERS, PLAIN, case, settings, stack

SHAPES = (4, 3), (3,), (2, 5)
HIDDEN = 0, 2
RATES = 0.1, 0.1, 0.02
STEPS = 7


def weights(seed: int = 0) -> list[nn.Parameter]:
    """Parameters of three replicas; the matrices among them count as hidden ones."""
    generator = torch.Generator().manual_seed(seed)
    built = [nn.Parameter(torch.randn(3, *shape, generator=generator, dtype=torch.float64)) for shape in SHAPES]
    for position in HIDDEN:
        built[position].is_hidden = True  # type: ignore[attr-defined]
    return built


def gradients(step: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(100 + step)
    return [torch.randn(3, *shape, generator=generator, dtype=torch.float64) for shape in SHAPES]


def each_of(name: str, **own: tuple[float, ...]) -> list[dict[str, Any]]:
    """The settings of three replicas."""
    plain = read_settings(find_plugin_files("optimisers")[name]) | {"weight_decay": 0.0, "optimiser": name}
    return [plain | {key: values[position] for key, values in own.items()} for position in range(3)]


def moved(name: str, each: list[dict[str, Any]], steps: range, held: list[nn.Parameter], state: Any = None) -> Any:
    """The optimiser after steps along the drawn gradients, at a falling rate."""
    optimiser = load_module("baselines/optimisers", name, "optimiser").Optimiser(
        held, RATES, Hyperparameters(each, torch.float64)
    )
    if state is not None:
        optimiser.load(state)
    for step in steps:
        for parameter, gradient in zip(held, gradients(step), strict=True):
            parameter.grad = gradient
        optimiser.step(1 / (1 + step))
    return optimiser


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("decays", [(0.0, 0.0, 0.0), (0.3, 0.3, 0.3), (0.0, 0.3, 0.7)])
def test_each_replica_moves_by_its_own_rate_and_decay_as_a_plain_optimiser_does(
    name: str, decays: tuple[float, ...]
) -> None:
    each = each_of(name, weight_decay=decays)
    locked = weights()
    moved(name, each, range(STEPS), locked)
    for position, own in enumerate(each):
        alone = [nn.Parameter(p.detach()[position : position + 1].clone()) for p in weights()]
        for hidden in HIDDEN:
            alone[hidden].is_hidden = True  # type: ignore[attr-defined]
        for step in range(STEPS):
            factor = 1 / (1 + step)
            if step == 0:
                plain = PLAIN[name](alone, own | {"lr": RATES[position]})
            slow(plain, RATES[position] * factor)
            for parameter, gradient in zip(alone, gradients(step), strict=True):
                parameter.grad = gradient[position : position + 1]
            plain.step()
        for ours, other in zip(locked, alone, strict=True):
            torch.testing.assert_close(ours[position], other[0], rtol=0, atol=1e-13)


def slow(plain: Any, rate: float) -> None:
    """Set the learning rate of a plain optimiser."""
    if isinstance(plain, torch.optim.Optimizer):
        for group in plain.param_groups:
            group["lr"] = rate
        return
    plain.own = plain.own | {"lr": rate}
    if getattr(plain, "others", None) is not None:
        slow(plain.others, rate)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_betas_and_momenta_are_a_replicas_own(name: str) -> None:
    setting = {"adam": "beta2", "adamw": "beta2", "lion": "beta1"}.get(name, "momentum")
    values = (0.9, 0.5, 0.1)
    locked = weights()
    moved(name, each_of(name, **{setting: values}), range(STEPS), locked)
    for position, value in enumerate(values):
        alike = weights()
        moved(name, each_of(name, **{setting: (value,) * 3}), range(STEPS), alike)
        for ours, other in zip(locked, alike, strict=True):
            torch.testing.assert_close(ours[position], other[position], rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_state_loaded_goes_on_in_every_bit(name: str) -> None:
    each = each_of(name, weight_decay=(0.0, 0.1, 0.2))
    full, halves = weights(), weights()
    moved(name, each, range(STEPS), full)
    state = moved(name, each, range(3), halves).state()
    moved(name, each, range(3, STEPS), halves, state)
    assert all(torch.equal(a, b) for a, b in zip(full, halves, strict=True))


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_state_is_a_copy_with_the_replicas_first(name: str) -> None:
    locked = weights()
    optimiser = moved(name, each_of(name), range(2), locked)
    state = optimiser.state()
    before = {key: value.clone() for key, value in state.items() if isinstance(value, Tensor)}
    for parameter, gradient in zip(locked, gradients(9), strict=True):
        parameter.grad = gradient
    optimiser.step(1.0)
    assert before
    assert all(len(value) == 3 and torch.equal(value, state[key]) for key, value in before.items())


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_parameter_without_a_gradient_stays(name: str) -> None:
    locked = weights()
    for position in (0, 1):
        locked[position].grad = gradients(0)[position]
    each = each_of(name, weight_decay=(0.5, 0.5, 0.5))
    load_module("baselines/optimisers", name, "optimiser").Optimiser(
        locked, RATES, Hyperparameters(each, torch.float64)
    ).step(1.0)
    changed = [not torch.equal(a, b) for a, b in zip(locked, weights(), strict=True)]
    assert changed == [True, True, False]


def test_orthogonalising_a_zero_gives_zero() -> None:
    assert torch.equal(orthogonalise_matrices(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


def test_muon_is_torchs_own_up_to_bfloat16() -> None:
    ours, theirs = (nn.Parameter(torch.randn(1, 8, 6, generator=torch.Generator().manual_seed(2))) for _ in range(2))
    flat = nn.Parameter(theirs.detach()[0].clone())
    ours.is_hidden = True  # type: ignore[attr-defined]
    own = read_settings(find_plugin_files("optimisers")["muon"]) | {"weight_decay": 0.1}
    optimiser = load_module("baselines/optimisers", "muon", "optimiser").Optimiser(
        [ours], [0.02], Hyperparameters([own])
    )
    other = torch.optim.Muon([flat], 0.02, 0.1, own["momentum"], adjust_lr_fn="match_rms_adamw")
    start = flat.detach().clone()
    for step in range(STEPS):
        gradient = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
        ours.grad, flat.grad = gradient[None], gradient.clone()
        optimiser.step(1.0)
        other.step()
    assert (ours[0] - flat).norm() < 0.02 * (flat - start).norm()


@pytest.mark.parametrize(
    ("network", "hidden"),
    [
        ("linear", set()),
        ("mlp", {"hidden.0.weight"}),
        ("cnn", {"convolutions.0.weight", "convolutions.1.weight", "dense.weight"}),
    ],
)
def test_hidden_matrices_are_linear_maps_and_convolutions_but_not_heads(network: str, hidden: set[str]) -> None:
    data, sizes = case(network)
    built = stack(network, [settings(network)], data, sizes, 1).network
    mark_hidden(built)
    assert {name for name, parameter in built.named_parameters() if is_hidden(parameter)} == hidden


BASE: dict[str, Any] = {
    "optimiser": "sgd",
    "momentum": 0.0,
    "nesterov": False,
    "weight_decay": 0.0,
    "schedule": "constant",
    "warmup_percent": 0,
    "clip": 0.0,
    "sharpness": 0.0,
    "lr": 0.1,
}
CURVES = torch.tensor([[1.0, 2.0, 3.0], [4.0, 1.0, 0.5]], dtype=torch.float64)


def made(*each: dict[str, Any]) -> tuple[OptimiserStep, nn.Parameter, nn.Parameter]:
    """A optimiser step of two replicas over two parameters, (2, 3) and (2, 1)."""
    start = torch.tensor([[1.0, -2.0, 0.5], [3.0, 1.0, -1.0]], dtype=torch.float64)
    first, second = nn.Parameter(start.clone()), nn.Parameter(start[:, :1].clone())
    settings = [BASE | own for own in each]
    hyperparameters = Hyperparameters(settings, torch.float64)
    return OptimiserStep([first, second], hyperparameters.exact("lr"), hyperparameters), first, second


def losses(first: Tensor, second: Tensor, curves: Tensor = CURVES) -> Tensor:
    return (curves * first.square()).sum(1) / 2 + second.pow(4).sum(1)


def one_alone(place: int, own: dict[str, Any]) -> list[Tensor]:
    """One step of a single replica, from the formulas."""
    _, first, second = made({}, {})
    w = [p.detach()[place].clone().requires_grad_() for p in (first, second)]

    def gradient(at: list[Tensor]) -> tuple[Tensor, ...]:
        loss = (CURVES[place] * at[0].square()).sum() / 2 + at[1].pow(4).sum()
        return torch.autograd.grad(loss, at)

    result = gradient(w)
    if own.get("sharpness"):
        norm = torch.cat(result).norm()
        moved = [(p + own["sharpness"] * g / norm).detach().requires_grad_() for p, g in zip(w, result, strict=True)]
        result = gradient(moved)
    if own.get("clip"):
        share = min(1.0, own["clip"] / (torch.cat(result).norm().item() + 1e-6))
        result = tuple(g * share for g in result)
    return [(p - own.get("lr", 0.1) * g).detach() for p, g in zip(w, result, strict=True)]


@pytest.mark.parametrize(
    "each",
    [
        ({"clip": 0.5}, {"clip": 1e9}),
        ({"clip": 0.0}, {"clip": 2.0}),
        ({"sharpness": 0.05}, {"sharpness": 0.4}),
        ({"sharpness": 0.0}, {"sharpness": 0.4}),
        ({"sharpness": 0.3, "clip": 1.0, "lr": 0.01}, {"sharpness": 0.1, "clip": 3.0, "lr": 0.2}),
    ],
)
def test_a_replica_is_clipped_and_sharpened_by_its_own_norm_and_settings(each: tuple[dict[str, Any], ...]) -> None:
    optimiser_step, first, second = made(*each)
    optimiser_step.at(0, 10)
    watched = optimiser_step.step(lambda: losses(first, second))
    _, *start = made({}, {})
    assert torch.equal(watched, losses(*start).detach())
    for position, own in enumerate(each):
        for ours, alone in zip((first, second), one_alone(position, own), strict=True):
            torch.testing.assert_close(ours[position], alone, rtol=0, atol=1e-14)


def test_a_sharpness_aware_step_at_a_rate_of_nothing_leaves_every_bit() -> None:
    optimiser_step, first, second = made({"sharpness": 0.3, "lr": 0.0}, {"sharpness": 0.7, "lr": 0.0})
    before = [p.detach().clone() for p in (first, second)]
    optimiser_step.step(lambda: losses(first, second))
    assert torch.equal(first, before[0])
    assert torch.equal(second, before[1])


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
def test_gradients_that_lie_in_another_order_are_followed_rightly(optimiser: str) -> None:
    """torch's fused optimisers read them as if they lay like the parameter."""
    own = BASE | {"optimiser": optimiser, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
    drawn = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    result = []
    for gradient in (drawn.transpose(1, 2), drawn.transpose(1, 2).contiguous()):
        parameter = nn.Parameter(torch.zeros(2, 6, 5, dtype=torch.float64))
        OptimiserStep([parameter], [0.1, 0.2], Hyperparameters([own, own], torch.float64)).follow([gradient])
        result.append(parameter.detach())
    assert result[0].abs().min() > 0
    assert torch.equal(*result)


def test_a_restart_forgets_the_moments() -> None:
    result = []
    for restarts in (False, True):
        optimiser_step, first, second = made({"momentum": 0.9}, {"momentum": 0.9})
        optimiser_step.step(lambda first=first, second=second: losses(first, second))  # type: ignore[misc]
        if restarts:
            optimiser_step.restart()
        before = first.detach().clone()
        optimiser_step.step(lambda first=first, second=second: losses(first, second))  # type: ignore[misc]
        result.append((before - first.detach()) / (CURVES * before))
    assert (result[0] - 0.1).abs().min() > 0.01
    torch.testing.assert_close(result[1], torch.full_like(CURVES, 0.1), rtol=0, atol=1e-14)


def test_the_rate_rises_over_the_warmup_and_then_follows_the_schedule() -> None:
    optimiser_step, *_ = made(
        {"warmup_percent": 20, "schedule": "linear"}, {"warmup_percent": 20, "schedule": "linear"}
    )
    factors = []
    for step in range(10):
        optimiser_step.at(step, 10)
        factors.append(optimiser_step.factor)
    assert factors == pytest.approx([0.5, 1.0, *(1 - position / 8 for position in range(8))])
