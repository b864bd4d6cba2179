"""What does training many replicas at once gain? Beside a plain loop over single replicas, in the same run.

make bench-training

The peer trains one replica: torch.nn layers, fused AdamW, its own shuffled batches, and nothing else; its time for K
replicas is K times that. Rounds are interleaved, and each row has the median of the rounds' ratios, by which a goal is met
or missed, with the ratio of the quietest rounds beside it. Where the two are far apart the machine was busy, and nothing is
concluded. On one thread the processor time of this process is taken, on all threads wall clock.

An MLP (64-160-160-10) at batches of 8 and 512, a Transformer (2 + 2 layers of 64) at batches of 64 x 16 tokens.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import Recipe, collect_defaults
from farshift.baselines.replicas.stacked import count_parameters
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from torch import Tensor, nn

ROWS, CLASSES, WORDS, LENGTH = 4096, 10, 20, 16
ROUNDS = 9
ROUND_SECONDS = 0.15
STEADY = 1.25
"""How far the median and the quietest rounds may be apart."""

Step = Callable[[], Any]
Timer = Callable[[], float]


def vectors() -> tuple[Data, Sizes]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, 64, generator=generator)
    label = torch.randint(CLASSES, (ROWS,), generator=generator)
    inputs = torch.zeros(ROWS, 0, dtype=torch.int64), x
    return Data(inputs, label[None], torch.ones(ROWS, dtype=torch.int64), torch.ones(1, ROWS)), Sizes(
        CLASSES, numbers=64
    )


def texts() -> tuple[Data, Sizes]:
    generator = torch.Generator().manual_seed(0)
    source, target = torch.randint(4, WORDS, (2, ROWS, LENGTH), generator=generator)
    lengths = torch.full((ROWS,), LENGTH)
    return Data((source, target), target[None], lengths, torch.ones(1, ROWS)), Sizes(WORDS, source=WORDS)


class PlainTransformer(nn.Module):
    """The Transformer of `networks/`, of torch.nn's own layers."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.wrote = nn.Embedding(WORDS, 64), nn.Embedding(WORDS, 64)
        block = nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True, norm_first=True)
        encoder = nn.TransformerEncoder(block, 2, nn.LayerNorm(64), enable_nested_tensor=False)
        self.body = nn.Transformer(64, 4, 2, 2, 256, 0.0, custom_encoder=encoder, batch_first=True, norm_first=True)
        self.head = nn.Linear(64, WORDS)
        angles = torch.arange(LENGTH)[:, None] * torch.exp(torch.arange(0, 64, 2) * (-math.log(10000) / 64))
        self.register_buffer("places", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))
        self.register_buffer("later", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        before = F.pad(target[:, :-1], (1, 0), value=1)
        x, y = self.read(source) * 8 + self.places, self.wrote(before) * 8 + self.places
        logits: Tensor = self.head(self.body(x, y, tgt_mask=self.later, tgt_is_causal=True))
        return logits


def plain_mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 160), nn.ReLU(), nn.Linear(160, 160), nn.ReLU(), nn.Linear(160, CLASSES))


def plain(network: nn.Module, data: Data, batch: int) -> Step:
    """A step of the loop over single replicas."""
    optimiser = torch.optim.AdamW(network.parameters(), 1e-3, fused=True)
    target, inputs = data.target[0], [x for x in data.inputs if x.shape[1]]
    order, start = torch.randperm(ROWS), 0

    def step() -> None:
        nonlocal order, start
        if start + batch > ROWS:
            order, start = torch.randperm(ROWS), 0
        rows = order[start : start + batch]
        start += batch
        optimiser.zero_grad(set_to_none=True)
        logits = network(*(x[rows] for x in inputs))
        F.cross_entropy(logits.flatten(0, -2), target[rows].flatten()).backward()
        optimiser.step()

    return step


def stacked(network: str, given: tuple[Data, Sizes], batch: int, replicas: int, **own: Any) -> Training:
    """A training of so many replicas that has no end."""
    built = Recipe(
        name="bench",
        title="Bench",
        citation="none",
        network=network,
        algorithm="erm",
        settings={},
        quick={"steps": 1},  # type: ignore[arg-type]
        full={"steps": 1},  # type: ignore[arg-type]
    )
    settings = collect_defaults(built) | {"batch_size": batch, "lr": 1e-3} | own
    names = [f"replica {number}" for number in range(replicas)]
    data, sizes = given
    task = "classification" if data.target.ndim == 2 else "sequence"
    return Training(ReplicaStack(network, "erm", [settings] * replicas, names, sizes, task, data, 10**9), data, 10**9)


def seconds(step: Step, timer: Timer, count: int) -> float:
    start = timer()
    for _ in range(count):
        step()
    return (timer() - start) / count


def interleaved(steps: dict[str, Step], timer: Timer) -> dict[str, list[float]]:
    """Seconds of a step in each round."""
    counts = {}
    for name, step in steps.items():
        seconds(step, timer, 3)
        counts[name] = max(2, int(ROUND_SECONDS / max(1e-6, seconds(step, time.perf_counter, 3))))
    result: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            result[name].append(seconds(step, timer, counts[name]))
    return result


@dataclass(frozen=True)
class Case:
    title: str
    network: str
    given: tuple[Data, Sizes]
    batch: int
    plain: Callable[[], nn.Module]
    goals: dict[int, float]
    """By the number of replicas: how many times as fast as the plain loop."""
    settings: dict[str, Any]


def cases() -> list[Case]:
    mlp = {"width": 160, "depth": 2}
    return [
        Case("MLP, batch 8", "mlp", vectors(), 8, plain_mlp, {1: 0.0, 8: 0.0, 32: 2.5}, mlp),
        Case("MLP, batch 512", "mlp", vectors(), 512, plain_mlp, {1: 0.95, 8: 1.0}, mlp),
        Case("Transformer, batch 64", "transformer", texts(), 64, PlainTransformer, {1: 0.95, 8: 1.0}, {}),
    ]


def compare(case: Case, timer: Timer) -> None:
    item = case.plain()
    steps: dict[str, Step] = {"plain": plain(item, case.given[0], case.batch)}
    for replicas in case.goals:
        training = stacked(case.network, case.given, case.batch, replicas, **case.settings)
        parameters = sum(p.numel() for p in item.parameters())
        assert count_parameters(training.stack.network) == parameters, "the peer must be the same network"
        steps[str(replicas)] = training.step
    result = interleaved(steps, timer)
    for replicas, goal in case.goals.items():
        pairs = zip(result["plain"], result[str(replicas)], strict=True)
        ratio = statistics.median(replicas * alone / ours for alone, ours in pairs)
        own, other = (1e3 * statistics.median(result[name]) for name in (str(replicas), "plain"))
        quiet = replicas * min(result["plain"]) / min(result[str(replicas)])
        verdict = f"goal {goal:g} x: {'met' if ratio >= goal else 'missed'}" if goal else ""
        if max(ratio / quiet, quiet / ratio) > STEADY:
            verdict = "too busy a machine to tell"
        times = f"{own:8.2f} ms a step  plain {other:7.2f} ms"
        print(f"{case.title:>22}  K = {replicas:<3} {times}  {ratio:5.2f} x  quietest {quiet:5.2f} x  {verdict}")


def main() -> None:
    every = torch.get_num_threads()
    for threads, timer, what in ((1, time.process_time, "processor time"), (every, time.perf_counter, "wall clock")):
        torch.set_num_threads(threads)
        print(f"threads: {threads} ({what}); medians of {ROUNDS} interleaved rounds")
        for case in cases():
            compare(case, timer)


if __name__ == "__main__":
    main()
