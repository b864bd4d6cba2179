"""Training one replica: one plain loop, data resident on the device, every draw from a named generator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..splits.draws import key
from ..splits.errors import ModelError
from .encoding import Encoded

SETTINGS: dict[str, Any] = {
    "batch_size": 128,
    "lr": 1e-3,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "clip": 0.0,
    "schedule": "constant",
    "warmup": 0.0,
    "pool": 1,
    "chunk": 0,
}
"""batch_size: 0 for full batches. clip: the largest gradient norm, 0 for none. schedule: `constant`, `linear` or
`cosine` (both to 0 at the last step), after a linear rise over the share `warmup` of all steps. pool: batches whose
rows are sorted by target length together, so that a batch holds rows of like length. chunk: the most rows of a full
batch that are computed at once, 0 for all; their gradients are summed, and a chunk that fits a cache is faster."""

Objective = Callable[[Tensor, Tensor, Tensor | None], Tensor]
"""Logits (.., classes), targets (..) and, in full batches of weighted rows, row weights (n,): a scalar loss."""


@dataclass(frozen=True)
class Remarks:
    """What training cost and where it ended."""

    loss: float
    steps: int
    parameters: int


def generator(name: str) -> torch.Generator:
    """A CPU generator of its own for the stream called `name` (seeded by the head of its sha256)."""
    return torch.Generator().manual_seed(key(name))


@contextmanager
def seeded(name: str) -> Iterator[None]:
    """torch's global generator seeded by `name` inside (initial weights, dropout), and untouched outside."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(key(name))
        yield


def epochs(weight: Tensor, draw: torch.Generator) -> Iterator[Tensor]:
    """Row numbers, one epoch after another, without end; each row as often as its weight says.

    Whole weights are copies: an epoch is all of them once, shuffled. Other weights are drawn with replacement,
    as many as there are rows.
    """
    if (weight == weight.round()).all():
        copies = torch.arange(len(weight)).repeat_interleave(weight.long())
        while True:
            yield copies[torch.randperm(len(copies), generator=draw)]
    ends = weight.double().cumsum(0)
    while True:
        where = torch.rand(len(weight), dtype=torch.float64, generator=draw) * ends[-1]
        yield torch.searchsorted(ends, where, right=True).clamp_(max=len(weight) - 1)


def batches(weight: Tensor, lengths: Tensor, size: int, pool: int, draw: torch.Generator) -> Iterator[Tensor]:
    """Row numbers of one batch after another, (size,), without end."""
    stream = epochs(weight, draw)
    held = torch.empty(0, dtype=torch.int64)
    while True:
        while len(held) < size * pool:
            held = torch.cat([held, next(stream)])
        some, held = held[: size * pool], held[size * pool :]
        if pool > 1:
            some = some[torch.argsort(lengths[some], stable=True)]
        for part in torch.randperm(pool, generator=draw).tolist():
            yield some[part * size : (part + 1) * size]


def rate(step: int, steps: int, settings: Mapping[str, Any]) -> float:
    """The share of `lr` in force at `step` of `steps` (from 0)."""
    rise = settings["warmup"] * steps
    if step < rise:
        return float((step + 1) / rise)
    left = (steps - step) / max(1.0, steps - rise)
    match settings["schedule"]:
        case "constant":
            return 1.0
        case "linear":
            return float(left)
        case "cosine":
            return 0.5 - 0.5 * math.cos(math.pi * left)
        case other:
            raise ModelError(f"setting schedule = {other!r}: use constant, linear or cosine")


def trimmed(data: Encoded, rows: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """The inputs and targets of some rows, without the columns in which all of them are padding (id 0)."""
    longest = int(data.lengths[rows].max())
    target = data.target[rows]
    if target.ndim == 1:
        return tuple(x[rows] for x in data.inputs), target
    source, written = data.inputs[0][rows], data.inputs[1][rows]
    read = int((source != 0).any(dim=0).sum())
    return (source[:, :read], written[:, :longest]), target[:, :longest]


Piece = tuple[tuple[Tensor, ...], Tensor, Tensor | None, float]
"""Inputs, targets, row weights (None: all alike), and the piece's share of the batch's loss."""


def chunks(data: Encoded, weight: Tensor, size: int) -> Iterator[Piece]:
    """A full batch in pieces of at most `size` rows (0: in one)."""
    even = bool((weight == weight[0]).all())
    for rows in torch.split(torch.arange(len(data)), size or len(data)):
        inputs, target = trimmed(data, rows)
        mass = None if even else weight[rows].float().to(target.device)
        yield inputs, target, mass, float(weight[rows].sum() / weight.sum())


def train(
    network: nn.Module,
    objective: Objective,
    data: Encoded,
    weight: Tensor,
    settings: Mapping[str, Any],
    steps: int,
    name: str,
) -> Remarks:
    """Train `network` in place for `steps` steps of AdamW.

    `weight` (n,): rows are drawn in proportion to it (in full batches: their losses are weighted by it). `name`
    names the replica and seeds the order of its rows. Raises `ModelError` when the loss is no longer finite.
    """
    optimiser = torch.optim.AdamW(
        network.parameters(),
        lr=settings["lr"],
        betas=(settings["beta1"], settings["beta2"]),
        eps=settings["eps"],
        weight_decay=settings["weight_decay"],
        fused=True,
    )
    size = settings["batch_size"]
    order = batches(weight, data.lengths, size, settings["pool"], generator(f"{name}/order")) if size else None
    pieces = [] if order else list(chunks(data, weight, settings["chunk"]))
    value = math.nan
    network.train()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = settings["lr"] * rate(step, steps, settings)
        optimiser.zero_grad()
        value = 0.0
        for inputs, target, mass, share in [(*trimmed(data, next(order)), None, 1.0)] if order else pieces:
            loss = objective(network(*inputs), target, mass) * share
            loss.backward()  # type: ignore[no-untyped-call]
            value += float(loss.detach())
        if settings["clip"]:
            nn.utils.clip_grad_norm_(network.parameters(), settings["clip"])
        optimiser.step()
        if not math.isfinite(value):
            raise ModelError(
                f"{name}: the loss is {value} at step {step + 1} of {steps}: "
                f"lower the setting lr (now {settings['lr']:g}) or set clip (now {settings['clip']:g})"
            )
    network.eval()
    return Remarks(value, steps, sum(p.numel() for p in network.parameters()))
