"""Algorithms against wrong labels: a replica comes out the same alone or among others, with settings of its own."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
import torch
from farshift.baselines.recipe import find_plugin_files, read_literal
from farshift.baselines.training.algorithm import TOUCHABLE
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .twelve_rows import rows, settings, stack

DIFFERENT: dict[str, list[dict[str, Any]]] = {
    "label_smoothing": [{"rate": 0.1}, {"rate": -0.3}, {"rate": 0.3}],
    "gce": [{"q": 0.7}, {"q": 0.3}, {"q": 0.9}],
    "sce": [{"beta": 1.0}, {"beta": 0.1}, {"beta": 0.5}],
    "bi_tempered": [{"t2": 1.0}, {"t2": 1.2}, {"t2": 2.0}],
    "forward_correction": [{"percentile": 97.0}, {"percentile": 80.0}, {"percentile": 100.0}],
    "backward_correction": [{"identity": 0.1}, {"identity": 0.3}, {"identity": 0.5}],
    "bootstrapping": [{"beta": 0.95}, {"beta": 0.8}, {"beta": 0.6}],
    "elr": [{"keep": 0.7}, {"keep": 0.9}, {"keep": 0.5}],
    "elr_plus": [{"slowness": 0.9}, {"slowness": 0.99, "ramp_percent": 50.0}, {"alpha": 4.0}],
    "sop": [{"u_lr": 10.0}, {"u_lr": 1.0}, {"u_lr": 5.0}],
    "co_teaching": [{"forget": 0.2}, {"forget": 0.5}, {"forget": 0.4}],
    "dividemix": [
        {"warm_percent": 20, "unlabelled": 25.0},
        {"warm_percent": 20, "unlabelled": 5.0},
        {"warm_percent": 20, "unlabelled": 50.0},
    ],
    "confident_learning": [{"lr": 0.01}, {"lr": 0.02}, {"lr": 0.005}],
    "ps_kd": [{"alpha": 0.8}, {"alpha": 0.4}, {"alpha": 0.6}],
}
IN_PIECES_OTHERWISE = {"co_teaching", "dividemix", "elr_plus", "confident_learning"}
"""Their loss of a batch is not the mean of its pieces'."""

COMMON = {"optimiser": "adamw", "lr": 0.01, "batch_size": 8, "dropout": 0.1}


def trained(name: str, each: list[dict[str, Any]], names: list[str]) -> list[Tensor]:
    """What the replica stack says of its training rows, and its weights."""
    data = rows(40)
    steps = 15
    training = Training(stack(name, [COMMON | own for own in each], data, steps, names=names), data, steps)
    training.run()
    built = training.stack
    return [built.answer(*data.inputs), *built.network.parameters()]


@pytest.mark.parametrize("name", DIFFERENT)
def test_three_replicas_together_are_the_three_alone(name: str) -> None:
    names = ["a", "b", "c"]
    together = trained(name, DIFFERENT[name], names)
    assert len(together[0]) == 3
    assert not torch.equal(together[0][0], together[0][1])
    for position, own in enumerate(DIFFERENT[name]):
        for ours, alone in zip(together, trained(name, [own], names[position : position + 1]), strict=True):
            torch.testing.assert_close(ours[position], alone[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_replica_that_leaves_takes_what_is_its_own_and_the_other_goes_on_as_if_alone(name: str) -> None:
    data, each = rows(), DIFFERENT[name][:2]
    together = Training(stack(name, each, data, 8), data, 8)
    alone = Training(stack(name, each[1:], data, 8, names=["replica 1"]), data, 8)
    for training in (together, alone):
        training.step()
    together._keep([1])
    for _ in range(7):
        for training in (together, alone):
            training.step()
    torch.testing.assert_close(together.losses, alone.losses, rtol=0, atol=1e-10)
    for item, other in zip(together.stack.network.parameters(), alone.stack.network.parameters(), strict=True):
        torch.testing.assert_close(item, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", sorted(DIFFERENT.keys() - IN_PIECES_OTHERWISE))
def test_a_full_batch_in_pieces_is_the_full_batch(name: str) -> None:
    data = rows()
    each = [{"chunk": chunk, **DIFFERENT[name][0]} for chunk in (0, 5)]
    full, pieces = (Training(stack(name, [own], data, 6, names=["a"]), data, 6) for own in each)
    assert full.stack.algorithm.additive
    for _ in range(6):
        full.step()
        pieces.step()
    for item, other in zip(full.stack.network.parameters(), pieces.stack.network.parameters(), strict=True):
        torch.testing.assert_close(item, other, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", [*DIFFERENT, "ipr_pruning"])
def test_an_algorithm_says_what_it_is(name: str) -> None:
    file = find_plugin_files("algorithms")[name]
    assert read_literal(file, "KIND") == "corrupted-label"
    assert "arXiv:" in read_literal(file, "CITATION")
    assert set(read_literal(file, "TASKS")) <= {"classification", "sequence"}
    assert set(read_literal(file, "TOUCHES")) <= set(TOUCHABLE)
    own = read_literal(file, "SETTINGS")
    for setting, (how, *rest) in read_literal(file, "SEARCH").items():
        assert setting in own
        assert how in ("uniform", "log10", "choice")
        assert all(type(value) is type(own[setting]) for value in rest)
    network = "quadratic_mlp" if name == "ipr_pruning" else "mlp"
    assert set(own) <= set(settings(name, network))


def test_every_algorithm_has_a_recipe() -> None:
    used = {tomllib.loads(file.read_text()).get("algorithm") for file in find_plugin_files("recipes").values()}
    assert {*DIFFERENT, "ipr_pruning"} <= used
