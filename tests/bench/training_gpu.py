"""What training gains on a GPU: checks, then times, in one go, as a table and as JSON.

make bench-gpu          (writes training_gpu.json into $OUT, or the working folder; under eight minutes on an H100)
python tests/bench/training_gpu.py --tiny      all of it in small, on any machine

1. Checks: the GPU and the CPU come to the same weights.
2. Modular addition (97 x 97 pairs, a quadratic network, batches of 512): many replicas at once against a plain loop over
   single ones; the share of the measured peak of matrix products at more and more replicas.
3. The phase diagram of wrong labels: 17 shares of training rows x 17 shares of wrong labels x 4 seeds, full batches.
4. Every domain algorithm on images of ColoredMNIST's shape: 20 settings x 3 trials x 5,000 steps.

What does not fit its slot is measured over some steps and extrapolated, and the row says so. What cannot be measured here
is left blank.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from farshift import FarshiftError
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import (
    Recipe,
    collect_defaults,
    find_plugin_files,
    load_recipes,
    read_literal,
    resolve_settings,
)
from farshift.baselines.replicas.hyperparameters import make_stack_key
from farshift.baselines.running.search import draw_settings
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from torch import nn

Row = dict[str, Any]
Settings = Mapping[str, Any]
P = 97


@dataclass
class Bench:
    """How large everything is, where it runs, and what was found."""

    tiny: bool
    device: torch.device
    found: list[Row] = field(default_factory=list)

    @property
    def gpu(self) -> bool:
        return self.device.type == "cuda"

    def note(self, what: str, **values: Any) -> None:
        self.found.append({"what": what, **values})
        output = "  ".join(
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items()
        )
        print(f"{what:>34}  {output}", flush=True)

    def now(self) -> float:
        if self.gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def seconds(self, step: Callable[[], Any], slot: float, warm: int) -> tuple[float, int]:
        """Seconds of a step, the median of blocks, and how many steps were timed within a slot of so many seconds."""
        for _ in range(warm):
            step()
        start, times, block = self.now(), [], 1 if self.tiny else 10
        while not times or (self.now() - start < slot and len(times) < 200):
            before = self.now()
            for _ in range(block):
                step()
            times.append((self.now() - before) / block)
        return statistics.median(times), len(times) * block


def complete_settings(network: str, algorithm: str = "erm", **own: Any) -> dict[str, Any]:
    spend: Any = {"steps": 1}
    named = {name: value for name, value in own.items() if name in ("optimiser", "schedule")}
    built = Recipe(name="bench", title="Bench", citation="none", network=network, algorithm=algorithm,
                  settings=named, quick=spend, full=spend)  # fmt: skip
    return collect_defaults(built) | own


def training(
    bench: Bench, network: str, each: Sequence[Settings], data: Data, sizes: Sizes, steps: int, algorithm: str = "erm",
    dtype: torch.dtype = torch.float32, device: torch.device | None = None,
) -> Training:  # fmt: skip
    names = [f"replica {number}" for number in range(len(each))]
    task = "sequence" if data.target.ndim == 3 else "classification"
    rows = data.to(device or bench.device)
    return Training(ReplicaStack(network, algorithm, each, names, sizes, task, rows, steps, dtype), rows, steps)


def modular() -> tuple[Data, Sizes]:
    """All sums modulo 97."""
    pairs = torch.cartesian_prod(torch.arange(P), torch.arange(P))
    rows = len(pairs)
    inputs = pairs, torch.zeros(rows, 0)
    return Data(inputs, (pairs.sum(1) % P)[None], torch.ones(rows, dtype=torch.int64), torch.ones(1, rows)), Sizes(
        P, (P, P)
    )


def images(rows: int, side: int, environments: int = 2, classes: int = 2, channels: int = 2) -> tuple[Data, Sizes]:
    """Noise of the shape of a data set: times do not depend on what is seen."""
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(rows, channels * side * side, generator=generator)
    label = torch.randint(classes, (1, rows), generator=generator)
    ones, lengths = torch.ones(1, rows), torch.ones(rows, dtype=torch.int64)
    data = Data((torch.zeros(rows, 0, dtype=torch.int64), x), label, lengths, ones, torch.arange(rows) % environments)
    locked = replace(data, group=torch.zeros(rows, dtype=torch.int64))
    data = replace(data, unlabelled=data.inputs, held_out={"id_val": locked, "ood_val": locked})
    return data, Sizes(classes, numbers=x.shape[1], shape=(side, side, channels))


def texts() -> tuple[Data, Sizes]:
    generator = torch.Generator().manual_seed(0)
    source, target = torch.randint(4, 20, (2, 256, 12), generator=generator)
    lengths, ones = torch.full((256,), 12), torch.ones(1, 256)
    return Data((source, target), target[None], lengths, ones), Sizes(20, source=20)


def gap(some: nn.Module, others: nn.Module) -> float:
    pairs = zip(some.parameters(), others.parameters(), strict=True)
    return max(float((a.detach().cpu().double() - b.detach().cpu().double()).abs().max()) for a, b in pairs)


def train_twelve_steps(
    bench: Bench, network: str, data: Data, sizes: Sizes, own: Row, device: torch.device | None = None
) -> nn.Module:
    """The network of two replicas."""
    each = [complete_settings(network, lr=lr, precision="float32", **own) for lr in (1e-3, 3e-3)]
    built = training(bench, network, each, data, sizes, 12, device=device)
    built.run()
    return built.stack.network  # type: ignore[no-any-return]


def checks(bench: Bench) -> None:
    cases: dict[str, tuple[tuple[Data, Sizes], Row, float]] = {
        "quadratic_mlp": (modular(), {"width": 32, "batch_size": 64}, 2e-2),
        "cnn": (images(64, 8), {"widths": [4, 8], "width": 16, "batch_size": 16}, 2e-2),
        "transformer": (texts(), {"width": 16, "layers": 1, "feedforward": 32, "batch_size": 16, "dropout": 0.1}, 2e-2),
    }
    for network, ((data, sizes), own, most) in cases.items():
        here = train_twelve_steps(bench, network, data, sizes, own)
        apart = gap(here, train_twelve_steps(bench, network, data, sizes, own, torch.device("cpu")))
        bench.note(f"check {network}", cpu=apart)
        if not apart <= most:
            raise SystemExit(f"{network}: {bench.device} and the CPU lead {apart:g} apart, more than {most:g}")


def plain_step(bench: Bench, width: int, batch: int, data: Data) -> Callable[[], Any]:
    """One replica in the usual way: torch.nn, fused AdamW, its own shuffled batches, everything on the device."""
    device, pairs, target = bench.device, data.inputs[0].to(bench.device), data.target[0].to(bench.device)
    into, head = nn.Embedding(2 * P, width, device=device), nn.Linear(width, P, bias=False, device=device)
    start, position = torch.tensor([0, P], device=device), 0
    optimiser = torch.optim.AdamW(
        [*into.parameters(), *head.parameters()], 1e-2, (0.9, 0.98), weight_decay=0.0, fused=True
    )
    order = torch.randperm(len(pairs), device=device)

    def step() -> None:
        nonlocal order, position
        if position + batch > len(pairs):
            order, position = torch.randperm(len(pairs), device=device), 0
        rows = order[position : position + batch]
        position += batch
        optimiser.zero_grad(set_to_none=True)
        outputs = head(into(pairs[rows] + start).sum(1).square())
        (outputs - F.one_hot(target[rows], P)).square().mean().backward()
        optimiser.step()

    return step


def peak(bench: Bench) -> float:
    """Multiplications and additions a second of one large product in float32, as the networks here take it."""
    side = 256 if bench.tiny else 8192
    a, b = torch.randn(2, side, side, device=bench.device)
    each, _ = bench.seconds(lambda: a @ b, 2.0, 3)
    return 2 * side**3 / each


def modular_replicas(bench: Bench) -> None:
    data, sizes = modular()
    width, batch = (16, 64) if bench.tiny else (500, 512)
    own = {"width": width, "batch_size": batch, "loss": "squared", "lr": 1e-2, "beta2": 0.98}
    most, slot = peak(bench), 0.2 if bench.tiny else 2.0
    alone, _ = bench.seconds(plain_step(bench, width, batch, data), slot, 5)
    bench.note("plain loop, one replica", ms=1e3 * alone, peak_tflops=most / 1e12)
    arithmetic = 6 * batch * width * P
    for replicas in (2, 4) if bench.tiny else (1, 16, 64, 256, 1024):
        each = [complete_settings("quadratic_mlp", **own)] * replicas
        built = training(bench, "quadratic_mlp", each, data, sizes, 10**6)
        took, _ = bench.seconds(built.step, slot, 10 if bench.gpu else 2)
        bench.note(
            f"modular, K = {replicas}", ms=1e3 * took, against_loop=replicas * alone / took,
            share_of_peak=replicas * arithmetic / took / most,
        )  # fmt: skip


def phase_diagram(bench: Bench) -> None:
    """Each replica has its own training rows (weights of 0 and 1) and its own wrong labels."""
    data, sizes = modular()
    points, seeds, steps = (2, 1, 4) if bench.tiny else (17, 4, 2000)
    at = torch.stack([x.flatten() for x in torch.meshgrid(
        torch.linspace(0.2, 0.8, points), torch.linspace(0, 0.8, points), torch.arange(seeds).float(), indexing="ij"
    )])  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    width, stack, slot = (16, 2, 1.0) if bench.tiny else (500, 145, 75.0)
    took = counted = 0.0
    for first in range(0, at.shape[1], stack):
        shares, wrong = (values[first : first + stack, None] for values in at[:2])
        drawn_rows = torch.rand(len(shares), len(data), generator=generator) < shares
        noisy = torch.rand(len(shares), len(data), generator=generator) < wrong
        other = torch.randint(P, noisy.shape, generator=generator)
        rows = data.changed(drawn_rows.float(), torch.where(noisy, other, data.target))
        each = [
            complete_settings("quadratic_mlp", width=width, batch_size=0, loss="squared", lr=1e-2, beta2=0.98)
        ] * len(shares)
        built = training(bench, "quadratic_mlp", each, rows, sizes, steps)
        start = bench.now()
        while not built.done and (took + bench.now() - start < slot or built.total < 20):
            built.step()
        took += bench.now() - start
        counted += built.total * len(shares)
        del built
        if took > slot:
            break
    full = at.shape[1] * steps
    bench.note(
        "phase diagram", runs=at.shape[1], steps=steps, seconds=took * full / counted,
        measured=f"{counted / full:.0%} of the steps" + (", the rest extrapolated" if counted < full else ""),
    )  # fmt: skip


def domain_recipes() -> Iterator[Recipe]:
    for built in load_recipes().values():
        if built.algorithm and read_literal(find_plugin_files("algorithms")[built.algorithm], "KIND") == "domain":
            yield built


def domain_algorithms(bench: Bench) -> None:
    """Replicas of like settings are stacked; each stack's step is timed for as long as its slot lasts."""
    side, count, trials, steps = (8, 2, 1, 10) if bench.tiny else (28, 20, 3, 5000)
    data, sizes = images(64 if bench.tiny else 20_000, side)
    known = list(domain_recipes())
    slot, total = (0.02, 0.0) if bench.tiny else (60.0 / len(known), 0.0)
    for built in known:
        stacks: dict[Any, list[Settings]] = {}
        for own in draw_settings(built.name, "colored_mnist/plus_90", count).values():
            settings = resolve_settings(built, "colored_mnist/plus_90", own)
            stacks.setdefault(make_stack_key(settings), []).extend([settings] * trials)
        largest = max(stacks.values(), key=len)
        try:
            run = training(bench, built.network or "", largest, data, sizes, steps, built.algorithm or "")
            each, timed = bench.seconds(run.step, slot, 6 if bench.gpu else 1)
        except (FarshiftError, RuntimeError) as error:
            bench.note(f"domain {built.name}", failed=str(error).splitlines()[0][:100])
            continue
        seconds = each * steps * len(stacks)
        total += seconds
        bench.note(
            f"domain {built.name}", replicas=count * trials, stacks=len(stacks), ms=1e3 * each, timed=timed,
            seconds_extrapolated=seconds,
        )  # fmt: skip
    bench.note("all domain algorithms", recipes=len(known), seconds_extrapolated=total)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true", help="all of it in small")
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts alone")
    given = parser.parse_args()
    if not given.tiny and not torch.cuda.is_available():
        raise SystemExit("there is no GPU here: --tiny runs all of it in small")
    bench = Bench(given.tiny, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    torch.backends.cuda.matmul.allow_tf32 = False
    name = torch.cuda.get_device_name() if bench.gpu else "CPU"
    print(f"{name}, torch {torch.__version__}", flush=True)
    card: Row = {"device": name, "torch": torch.__version__, "tiny": given.tiny, "rows": bench.found}
    start = time.perf_counter()
    for part in given.only or PARTS:
        PARTS[part](bench)
        (Path(os.environ.get("OUT", ".")) / "training_gpu.json").write_text(json.dumps(card, indent=1) + "\n", "utf-8")
    print(f"{time.perf_counter() - start:.0f} s in all")


PARTS: dict[str, Callable[[Bench], None]] = {
    "checks": checks,
    "modular": modular_replicas,
    "phase": phase_diagram,
    "domain": domain_algorithms,
}


if __name__ == "__main__":
    main()
