"""Predict a draw: train on the public training rows, then predict the draw's rows and the public test rows with the
ordinary evaluation loop. The labels of both are not in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.harness.evaluate import evaluate
from ...benchmarks.model_inputs.load import load_model_inputs
from ...benchmarks.runs.run import Run
from .benchmark import make_sealed_benchmark
from .draw_folder import PublishedDraw, find_window_benchmark, read_draw
from .drawing import SEALED


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
    model_inputs = load_model_inputs(public)
    parts = {**model_inputs.parts, SEALED: sealed.inputs}
    return evaluate(
        model, sealed, seeds=seeds, budget=budget, model_inputs=replace(model_inputs, parts=parts), **options
    )
