"""Predict a draw: train on the public training rows, then predict the draw's rows and the public test rows with the
ordinary evaluation loop. The labels of both are not in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.blind.data import load_model_inputs
from ...benchmarks.blind.rows import Inputs, ModelInputs
from ...benchmarks.harness.evaluate import evaluate
from ...benchmarks.runs.run import Run
from .benchmark import make_sealed_benchmark
from .draw_folder import PublishedDraw, find_window_benchmark, read_draw
from .drawing import SEALED


@dataclass(frozen=True)
class _BlindDataWithDraw(ModelInputs):
    """A public benchmark's model inputs, and the draw's inputs."""

    drawn: Inputs

    def part(self, name: str) -> Inputs:
        return self.drawn if name == SEALED else super().part(name)


def predict_draw(
    model: Any,
    draw: PublishedDraw | Path | str,
    benchmark: Benchmark | None = None,
    seeds: int | Sequence[int] | None = None,
    budget: str = "full",
    **options: Any,
) -> Run:
    """Train a model on the public training rows of a window's benchmark, predict the draw, and write a run folder for
    `answers.pack_answers`. `draw` is the folder written by `farshift board sealed draw`; all other arguments are those
    of `farshift.evaluate`."""
    published_draw = draw if isinstance(draw, PublishedDraw) else read_draw(draw)
    public = benchmark or find_window_benchmark(published_draw.terms)
    sealed = make_sealed_benchmark(public, published_draw)
    public_data = load_model_inputs(public)
    drawn = Inputs(SEALED, sealed.inputs.row_ids, sealed.inputs.numpy(public.task.inputs))
    blind = _BlindDataWithDraw(public_data.folder, public_data.task, public_data.card, drawn)
    return evaluate(model, sealed, seeds=seeds, budget=budget, blind=blind, **options)
