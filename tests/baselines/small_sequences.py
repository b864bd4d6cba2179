"""Small sequence tasks and replica stacks of them, in float64 and by plain optimiser step, whose steps can be computed by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import PAD
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.replicas.stacked import select_replicas
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Task
from torch import Tensor

from .toys import PARITY, TURN, Rows, bits, commands, recipe, start_training, words

COPY = Task("sequence", ("input",), "output")

TINY: dict[str, dict[str, Any]] = {
    "transformer": {"width": 8, "heads": 2, "layers": 1, "feedforward": 8},
    "lstm": {"width": 8},
    "deep_thinking": {"width": 6, "blocks": 1, "iterations": 4},
}
PLAIN: dict[str, Any] = {"optimiser": "sgd", "momentum": 0.0, "lr": 0.5, "batch_size": 4, "clip": 0.0}


def pairs(*rows: tuple[str, str]) -> dict[str, Any]:
    """Rows of COPY's columns."""
    return {"input": words([a for a, _ in rows]), "output": words([b for _, b in rows])}


def settings(network: str, algorithm: str, **own: Any) -> dict[str, Any]:
    """Complete settings: a tiny network, batches of four and plain gradient descent where nothing else is said."""
    given = PLAIN | TINY.get(network, {}) | own
    built = recipe(network, 1, algorithm)
    return resolve_settings(built, "case/case", given)


def training(
    network: str,
    algorithm: str,
    each: Sequence[Mapping[str, Any]],
    steps: int = 4,
    names: Sequence[str] = (),
    rows: Rows | None = None,
) -> Training:
    """A training of one replica for each of the settings in `each`, on toy commands or running parities."""
    task = PARITY if network == "deep_thinking" else TURN
    names = names or [f"replica {position}" for position in range(len(each))]
    built = recipe(network, steps, algorithm)
    each = [PLAIN | TINY.get(network, {}) | own for own in each]
    rows = rows or (bits(12, 5) if task is PARITY else commands())
    return start_training(built, task, rows, each, names, dtype=torch.float64)


def alone(network: Any, place: int) -> Any:
    """A copy of one replica, still with a replica axis, of 1."""
    return select_replicas(network, [place])


def risk(logits: Tensor, target: Tensor) -> Tensor:
    """The mean cross-entropy of the tokens of one replica's batch, logits (1, n, T, words) and target (n, T)."""
    real = target != PAD
    return F.cross_entropy(logits[0][real], target[real])


def check_alike(first: Any, second: Any, tolerance: float = 1e-12) -> None:
    """Two modules have the same weights."""
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=tolerance)
