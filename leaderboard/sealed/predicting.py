"""Answering a draw: train on the public training rows, then be asked for the draw's inputs and the public test rows, by
the harness's own path. The labels of either are not in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.blind.data import BlindData, Inputs, blind_data
from ...benchmarks.fingerprint import fingerprint
from ...benchmarks.harness.evaluate import begin, seed_numbers
from ...benchmarks.harness.factory import factory, model_name
from ...benchmarks.harness.query import Query
from ...benchmarks.harness.seed import BATCH, TIME_LIMIT, run_seed
from ...benchmarks.harness.time_limit import TimeLimit
from ...benchmarks.model import Budget
from ...benchmarks.parsing import named_errors
from ...benchmarks.runs.run import Run
from ...benchmarks.settings import Settings, checked, stated
from ...core.device import check_device
from ...core.errors import FarshiftError
from .benchmark import sealed_benchmark
from .draw_folder import Draw, benchmark_of, read_draw
from .drawing import SEALED


@dataclass(frozen=True)
class _WithDraw(BlindData):
    """A public blind data, and the draw's inputs."""

    drawn: Inputs

    def part(self, name: str) -> Inputs:
        return self.drawn if name == SEALED else super().part(name)


def predict_draw(
    model: Any,
    draw: Draw | Path | str,
    benchmark: Benchmark | None = None,
    seeds: int | Sequence[int] | None = None,
    budget: str = "full",
    *,
    out: Path | str | None = None,
    steps: int | None = None,
    device: str = "cpu",
    name: str | None = None,
    batch_size: int = BATCH,
    selection: str | None = None,
    settings: Settings | None = None,
    time_limit: float = TIME_LIMIT,
    code: str | None = None,
    on_hang: Callable[[], None] | None = None,
) -> Run:
    """Train a model on the public training rows of a window's benchmark and have it answer the draw; writes a run
    folder, which `answers.pack_answers` packs. The arguments are those of `farshift.evaluate`; `draw` is what
    `farshift board draw` wrote."""
    given = draw if isinstance(draw, Draw) else read_draw(draw)
    public = benchmark or benchmark_of(given.terms)
    if budget not in ("full", "quick"):
        raise FarshiftError(f"budget {budget!r}: use full or quick")
    check_device(device)
    sealed = sealed_benchmark(public, given)
    chosen = seed_numbers(seeds, sealed, budget)
    named = checked(settings)
    seen = blind_data(public)
    drawn = Inputs(SEALED, sealed.inputs.row_ids, sealed.inputs.numpy(public.task.inputs))
    blind = _WithDraw(seen.folder, seen.task, seen.card, drawn)
    with named_errors(f"reading the model, a {type(model).__name__},"):
        make = factory(model, public.task, device, blind.prompt)
        card: dict[str, Any] = {
            "name": name or model_name(model),
            "kind": "own",
            "code": code or fingerprint(model),
            "batch_size": batch_size,
        }
    if settings:
        card["settings"] = {key: stated(values) for key, values in named.items()}
    spend = Budget(budget, steps, device)
    with begin(sealed, out, card, spend, chosen, selection) as folder:
        teller = Query(public.task, batch_size, TimeLimit(time_limit, on_hang))
        for seed in folder.missing():
            run_seed(folder, sealed, make, seed, spend, teller, blind, named)
        return folder.finish()
