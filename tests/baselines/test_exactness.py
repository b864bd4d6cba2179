"""A replica trained among others is the replica that a plain loop trains: every network, under every optimiser."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from farshift.baselines.replicas.stacked import select_replicas
from farshift.baselines.training.trainer import Training
from torch import nn

from .plain_loops import (
    NETWORKS,
    OPTIMISERS,
    PLAIN,
    as_float,
    case,
    gap,
    gap_where_steep,
    plainly_trained,
    settings,
    stack,
)

STEPS = 10
NAMES = ("a", "b", "c")
DIFFERENT = {"lr": (0.003, 0.001, 0.0003), "weight_decay": (0.0, 0.1, 0.3)}
EACH = [{name: values[position] for name, values in DIFFERENT.items()} for position in range(3)]


@pytest.mark.parametrize(
    ("network", "optimiser"),
    [
        pytest.param(network, optimiser, marks=() if optimiser == "adamw" or network == "mlp" else pytest.mark.slow)
        for network in NETWORKS
        for optimiser in OPTIMISERS
        # A unit that is active for both replies, and a bias of all nodes' scores, have a gradient of 0 up to rounding,
        # of which Lion takes the sign; Muon enlarges the rounding of near-singular gradients, as a pointer's are.
        if (network, optimiser) not in (("reward", "lion"), ("node_pointer", "lion"), ("node_pointer", "muon"))
    ],
)
def test_three_replicas_together_are_three_plain_loops(network: str, optimiser: str) -> None:
    data, sizes = case(network)
    each = [settings(network, optimiser, **own) for own in EACH]
    training = Training(stack(network, each, data, sizes, STEPS), data, STEPS)
    before = select_replicas(training.stack.network, range(3))
    training.run()
    ours = training.stack.network
    inputs = tuple(x[None] for x in data.inputs)
    together = ours.eval()(*(x.expand(3, *x.shape[1:]) for x in inputs))
    for position, own in enumerate(each):
        alone: Any = select_replicas(before, [position])
        assert gap(before, position, alone) == 0
        steepest = plainly_trained(alone, data, own, STEPS)
        assert gap(before, position, alone) > 1e-4
        assert gap_where_steep(ours, position, alone, steepest) <= 1e-12
        assert torch.allclose(together[position], alone.eval()(*inputs)[0], rtol=0, atol=1e-11)


def trained(
    network: str, each: list[dict[str, Any]], names: tuple[str, ...], dtype: torch.dtype = torch.float64
) -> Training:
    """A finished training on sixteen rows."""
    data, sizes = case(network, 16)
    data = as_float(data, dtype)
    training = Training(stack(network, each, data, sizes, STEPS, dtype, names=names), data, STEPS)
    training.run()
    return training


@pytest.mark.parametrize(
    ("network", "size"),
    [("mlp", 4), ("cnn", 4), ("resnet", 4), ("lstm", 0), ("gru", 0), ("elman", 0), ("transformer", 0)],
    ids=lambda value: str(value),
)
def test_in_single_precision_a_replica_keeps_every_bit_among_others(network: str, size: int) -> None:
    each = [settings(network, batch_size=size, dropout=0.2, **own) for own in EACH]
    together = trained(network, each, NAMES, torch.float32).stack.network
    for position in range(3):
        here = slice(position, position + 1)
        alone = trained(network, each[here], NAMES[here], torch.float32).stack.network
        assert gap(together, position, alone) == 0
    assert not torch.equal(together.head.weight[0], together.head.weight[1])


@pytest.mark.parametrize("network", ["lstm", "transformer"])
def test_in_single_precision_rows_padded_for_others_move_what_is_written_by_rounding_alone(network: str) -> None:
    each = [settings(network, batch_size=4, dropout=0.2, **own) for own in EACH]
    together = trained(network, each, NAMES, torch.float32).stack
    inputs = case(network, 16)[0].inputs
    for position in range(3):
        here = slice(position, position + 1)
        alone = trained(network, each[here], NAMES[here], torch.float32).stack
        torch.testing.assert_close(together.answer(*inputs)[position], alone.answer(*inputs)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("optimiser", ["adamw", "sgd"])
def test_a_perceptron_is_the_one_of_torch_nn_on_the_same_batches(optimiser: str) -> None:
    each = [settings("mlp", optimiser, batch_size=4, **own) for own in EACH]
    data, sizes = case("mlp", 16)
    training = Training(stack("mlp", each, data, sizes, STEPS), data, STEPS)
    start = select_replicas(training.stack.network, range(3))
    rows = [training.sampler.batch(step).rows for step in range(STEPS)]
    training.run()
    ours = training.stack.network
    x = torch.cat([*(torch.eye(4)[data.inputs[0][:, field]] for field in range(2)), data.inputs[1]], 1).double()
    for position, own in enumerate(each):
        plain = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 3)).double()
        with torch.no_grad():
            for layer, other in ((plain[0], start.hidden[0]), (plain[2], start.head)):
                layer.weight.copy_(other.weight[position])  # type: ignore[operator, union-attr]
                layer.bias.copy_(other.bias[position])  # type: ignore[operator, union-attr]
        optimiser_step = PLAIN[optimiser](list(plain.parameters()), own)
        for drawn in rows:
            optimiser_step.zero_grad()
            F.cross_entropy(plain(x[drawn[position]]), data.target[0][drawn[position]]).backward()
            optimiser_step.step()
        for weight, own_weight in zip(plain.parameters(), ours.parameters(), strict=True):
            torch.testing.assert_close(own_weight[position], weight, rtol=0, atol=1e-12)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_a_replica_that_fails_leaves_the_others_as_they_would_be_without_it(optimiser: str) -> None:
    each = [settings("mlp", optimiser, batch_size=4, **own) for own in EACH]
    for broken in range(3):
        others = [position for position in range(3) if position != broken]
        spoiled = [own | {"lr": 1e300} if position == broken else own for position, own in enumerate(each)]
        full = trained("mlp", spoiled, NAMES)
        assert list(full.outcome.failed) == [broken]
        stored = trained("mlp", [each[position] for position in others], tuple(NAMES[position] for position in others))
        for position in range(2):
            assert gap(full.stack.network, position, select_replicas(stored.stack.network, [position])) == 0


def stopped(each: list[dict[str, Any]], names: tuple[str, ...]) -> Training:
    """A training that looks at validation rows every fifth step, and stops a replica after one look in vain."""
    data, sizes = case("mlp", 16)
    data = replace(data, held_out={"id_val": data})
    training = Training(stack("mlp", each, data, sizes, 100, names=names), data, 100)
    training.run()
    return training


def test_a_replica_that_stops_early_leaves_the_others_as_they_would_be_alone() -> None:
    rates = (1.0, 0.1, 0.01)
    each = [settings("mlp", batch_size=4, check_every=5, patience=1, lr=lr) for lr in rates]
    together = stopped(each, NAMES)
    steps = together.outcome.steps
    assert len(set(steps.values())) > 1
    for ended in together.outcome.ended:
        for position, number in enumerate(ended.number.tolist()):
            alone = stopped([each[number]], (NAMES[number],))
            assert alone.outcome.steps == {0: steps[number]}
            assert gap(ended.network, position, alone.outcome.ended[0].network) == 0


@pytest.mark.parametrize(
    ("network", "more"),
    [
        ("lstm", {}),
        ("transformer", {}),
        ("transformer", {"position": "randomised"}),
        ("decoder_transformer", {"position": "randomised", "dropout": 0.0}),
    ],
)
def test_the_noise_of_a_replica_depends_on_neither_the_length_of_the_others_rows_nor_their_dropout(
    network: str, more: dict[str, Any]
) -> None:
    """Replicas whose batches are padded to the longest row of all of them, some without dropout."""
    rates = [{"dropout": rate} for rate in (0.4, 0.0, 0.2)]
    each = [settings(network, **{"batch_size": 2} | own | rate | more) for own, rate in zip(EACH, rates, strict=True)]
    data, sizes = case(network, 8)

    def widths(places: list[int]) -> tuple[set[int], Any]:
        chosen = stack(network, [each[i] for i in places], data, sizes, STEPS, names=[NAMES[i] for i in places])
        training = Training(chosen, data, STEPS)
        seen = {training.sampler.batch(step).target.shape[-1] for step in range(STEPS)}
        training.run()
        return seen, training.stack.network

    _, together = widths([0, 1, 2])
    for position in range(3):
        seen, alone = widths([position])
        assert len(seen) > 1
        assert gap(together, position, alone) <= 1e-9, "sums over padding round otherwise; other noise is 0.1 or more"
