"""Answering a draw: train on the public training rows, then be asked for the draw's inputs and the public test rows, by
the evaluation loop of every other model. The labels of either are not in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.blind.data import blind_data
from ...benchmarks.blind.rows import BlindData, Inputs
from ...benchmarks.harness.evaluate import evaluate
from ...benchmarks.runs.run import Run
from .benchmark import sealed_benchmark
from .draw_folder import Draw, benchmark_of, read_draw
from .drawing import SEALED


@dataclass(frozen=True)
class _WithDraw(BlindData):
    """A public benchmark's blind data, and the draw's inputs."""

    drawn: Inputs

    def part(self, name: str) -> Inputs:
        return self.drawn if name == SEALED else super().part(name)


def predict_draw(
    model: Any,
    draw: Draw | Path | str,
    benchmark: Benchmark | None = None,
    seeds: int | Sequence[int] | None = None,
    budget: str = "full",
    **options: Any,
) -> Run:
    """Train a model on the public training rows of a window's benchmark and have it answer the draw; writes a run
    folder, which `answers.pack_answers` packs. `draw` is what `farshift board sealed draw` wrote; all other arguments
    are those of `farshift.evaluate`."""
    given = draw if isinstance(draw, Draw) else read_draw(draw)
    public = benchmark or benchmark_of(given.terms)
    sealed = sealed_benchmark(public, given)
    seen = blind_data(public)
    drawn = Inputs(SEALED, sealed.inputs.row_ids, sealed.inputs.numpy(public.task.inputs))
    blind = _WithDraw(seen.folder, seen.task, seen.card, drawn)
    return evaluate(model, sealed, seeds=seeds, budget=budget, blind=blind, **options)
