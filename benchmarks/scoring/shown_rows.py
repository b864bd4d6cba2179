"""Single rows of a run as people check them: what a model was asked, what it wrote, the answer in it, the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import UnknownName
from ..benchmark import Benchmark
from ..model import Task
from ..model_inputs.load import load_model_inputs
from ..runs.predictions import read_outputs
from ..runs.run import Run, read_run
from .answered_rows import RunPredictions
from .score import get_run_benchmark

_STATES = ("answered", "abstained", "failed")


def show_rows(
    run: Run | Path | str, count: int, view: str = "ood", selection: str | None = None
) -> list[dict[str, Any]]:
    """Show `count` rows of a view under the first seed, drawn by row id: the same for every model. `UnknownName` for an
    unknown view.

    Returns plain JSON for each row: `row_id`, `seed`, `candidate`; `input`, the prompt of a language model, else the
    inputs; `output`, its raw text, None if the run has none; `answer`, the prediction that was read, None if there is
    none; `state`; `truth`; `score` by the primary metric, None for one that is not a mean over rows."""
    run = run if isinstance(run, Run) else read_run(run)
    benchmark = get_run_benchmark(run)
    if view not in benchmark.definition.views:
        raise UnknownName(f"view of {benchmark.name}", view, benchmark.definition.views)
    scored = RunPredictions(benchmark, run.predictions(), run)
    chosen = scored.choose(benchmark.rule(selection or run.selection))
    seed = run.seeds[0]
    rows = scored.view(view, chosen)
    drawn = np.sort(draw_permutation(f"show/{benchmark.name}/{view}", rows.row_ids)[:count])
    rows, task, metric = rows.select(drawn), benchmark.task, benchmark.metrics[0]
    complete = rows.answers[0].fill_missing(rows.truth, task)
    scores = None if metric.per_row is None else metric.per_row(complete, rows.truth, task)
    part = benchmark.definition.views[view].part
    outputs = read_outputs(run.path, part, seed, chosen[seed])
    texts = _list_inputs(benchmark, part, rows.row_ids, prompted=bool(outputs))
    answers = rows.answers[0]
    return [
        {
            "row_id": int(row_id),
            "seed": seed,
            "candidate": chosen[seed],
            "input": texts[row],
            "output": outputs.get(int(row_id)),
            "answer": _format_label(answers.prediction[row], task) if answers.answered[row] else None,
            "state": _STATES[int(answers.status[row])],
            "truth": _format_label(rows.truth[row], task),
            "score": None if scores is None else float(scores[row]),
        }
        for row, row_id in enumerate(rows.row_ids)
    ]


def _list_inputs(benchmark: Benchmark, part: str, row_ids: NDArray[np.uint64], prompted: bool) -> list[str]:
    """Return the prompt of each row, or its inputs by name."""
    inputs = load_model_inputs(benchmark)
    rows = inputs.part(part)
    batch = rows.batch(np.searchsorted(rows.row_ids, row_ids))
    if prompted and inputs.prompt is not None:
        return [
            "".join(part if isinstance(part, str) else f"<{part.type}, {len(part.content):,} bytes>" for part in parts)
            for parts in inputs.prompt.all_parts(batch)
        ]
    return [
        "\n".join(f"{name}: {_format_value(batch[name][row])}" for name in benchmark.task.inputs)
        for row in range(len(row_ids))
    ]


def _format_value(value: Any) -> str:
    if isinstance(value, bytes):
        return f"<{len(value):,} bytes>"
    shape = np.shape(value)
    return f"<{value.dtype}[{','.join(map(str, shape))}]>" if np.size(value) > _MOST_NUMBERS else str(value)


_MOST_NUMBERS = 16
"""The most numbers of one input that are shown."""


def _format_label(value: Any, task: Task) -> str:
    return task.names[int(value)] if task.names and task.type == "classification" else str(value)
