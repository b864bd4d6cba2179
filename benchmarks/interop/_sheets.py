"""The exported form of a benchmark: each row that a run predicts is a sample; samples are grouped in sheets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.canonical import to_canonical_json
from ...core.errors import BadDefinition, FarshiftError, shorten_list
from ..benchmark import Benchmark, load_benchmarks, make_canary
from ..model_inputs.load import load_model_inputs
from ..prompting.grading import Grader
from ..prompting.prompt import Prompt


@dataclass(frozen=True)
class ExportedBenchmark:
    """A benchmark in the form for other runners.

    name: its task name, of letters, digits and underscores. sheets: by name, the samples of one task: the rows of a
    view, so that their mean is that view's score, or the other rows of a part, which a run must predict too. A sample
    has `row_id`, 16 hexadecimal digits; its `part`; `view`, the sheet; `prompt`, the model's whole input, with the
    examples; `target`, the true label as text; `label`, as a metric reads it (a class by its index); and the
    benchmark's `entry_identity`, to identify a log, and `canary`, which no model sees.
    """

    name: str
    title: str
    grader: Grader
    sheets: Mapping[str, Sequence[Mapping[str, Any]]]
    canary: str

    @property
    def rows(self) -> int:
        return sum(len(samples) for samples in self.sheets.values())

    @property
    def tasks(self) -> dict[str, str]:
        """The sheets by their task names, in order."""
        return {f"{self.name}_{sheet}": sheet for sheet in self.sheets}

    def metadata(self) -> dict[str, str]:
        """Return the metadata of a task for its log."""
        grader = self.grader
        return {
            "benchmark": grader.benchmark,
            "entry_identity": grader.entry_identity,
            "prompt": grader.prompt.signature,
            "metric": grader.metric.signature,
        }

    def write_files(self, tool: str, source: str, run: str, logs: str) -> dict[str, bytes]:
        """Return the files that the folder of every runner has: README.md, benchmark.json for the grader, and the
        samples of each sheet. tool: the runner's name, and `source` the one that `farshift benchmarks import` has for
        it. run: the command that runs the model in the folder, and writes `logs`."""
        name = self.grader.benchmark
        text = _README.format(
            title=self.title,
            benchmark=name,
            canary=self.canary,
            tool=tool,
            tasks="\n".join(f"- `{task}`: {len(self.sheets[sheet])} rows" for task, sheet in self.tasks.items()),
            run=run,
            read=f"farshift benchmarks import {logs} --from {source} --on {name} --out ../run",
            identity=self.grader.entry_identity,
        )
        files = {"README.md": text.encode(), "benchmark.json": to_canonical_json(self.grader.record())}
        for sheet, samples in self.sheets.items():
            files[f"data/{sheet}.jsonl"] = b"".join(to_canonical_json(sample) + b"\n" for sample in samples)
        return files


_README = """\
# {title}

The benchmark {benchmark} of Farshift (entry identity `{identity}`), written for {tool}. Every row that a
run must predict is here once, with its whole prompt; the runner adds no examples.

**This folder holds the true labels.** Do not train on it, and do not publish it where a crawler finds it.
{canary}

{tasks}

Farshift must be installed beside {tool}: answers are read and graded by Farshift's own extraction and metric,
so that both give the same score. In this folder:

    {run}

All tasks together make a run, to score, compare and submit:

    {read}
"""


def require_prompt(benchmark: Benchmark) -> Prompt:
    """Return the benchmark's prompt; `FarshiftError` if other runners cannot send it as text and average over rows."""
    task, primary = benchmark.task, benchmark.metrics[0]
    if benchmark.definition.prompt is None:
        have = [name for name, other in load_benchmarks().items() if other.definition.prompt is not None]
        raise FarshiftError(f"{benchmark.name} has no prompt to export: benchmarks with one are {shorten_list(have)}")
    if task.type == "regression":
        raise FarshiftError(f"{benchmark.name} is a regression task: only classes and texts can be exported")
    if primary.per_row is None or primary.needs != "prediction":
        raise FarshiftError(
            f"{benchmark.name} is scored by {primary.name}, which is not a mean over rows of a score per text: "
            "other runners cannot compute it; use farshift evaluate"
        )
    if benchmark.rule(None).folds is not None:
        raise FarshiftError(
            f"{benchmark.name} is scored by {benchmark.rule(None).name}, which trains additional models: other runners "
            "cannot train; use farshift evaluate"
        )
    prompt = load_model_inputs(benchmark).prompt
    assert prompt is not None
    return prompt


def iterate_prompts(benchmark: Benchmark, prompt: Prompt) -> Iterator[tuple[str, NDArray[np.uint64], list[str]]]:
    """Yield for each predicted part its name, row ids (n,) and n prompts."""
    model_inputs = load_model_inputs(benchmark)
    for name in benchmark.predicted_parts:
        inputs = model_inputs.part(name)
        yield name, inputs.row_ids, prompt.texts(inputs.batch(slice(None)))


def make_export(benchmark: Benchmark) -> ExportedBenchmark:
    """Export each predicted row once: a sheet per view that is scored against the true label and shares no rows with an
    earlier one (ID and OOD first), then a sheet per part for the remaining rows."""
    grader = Grader.of(benchmark, require_prompt(benchmark))
    remaining = {sample["row_id"]: sample for sample in _iterate_samples(benchmark, grader)}
    sheets: dict[str, list[dict[str, Any]]] = {}

    def add_sheet(name: str, row_ids: Sequence[str]) -> None:
        plain = _to_identifier(name)
        if not plain or plain in sheets:
            names = ", ".join([*sheets, plain])
            raise BadDefinition(
                f"{benchmark.path}: the task names of its views and parts would be {names}: rename views so that each "
                "has letters or digits and the names differ"
            )
        sheets[plain] = [remaining.pop(row_id) | {"view": plain} for row_id in row_ids]

    true = [name for name, view in benchmark.definition.views.items() if view.against == "true"]
    for view in sorted(true, key=lambda name: (name != "id", name != "ood", name)):
        here = [f"{row_id:016x}" for row_id in benchmark.view(view)[0].row_ids]
        if all(row_id in remaining for row_id in here):
            add_sheet(view, here)
    for part in benchmark.predicted_parts:
        if rest := [row_id for row_id, sample in remaining.items() if sample["part"] == part]:
            add_sheet(part, rest)
    name, title = _to_identifier(f"farshift_{benchmark.name}"), benchmark.definition.title
    return ExportedBenchmark(name, title, grader, sheets, make_canary(benchmark))


def _to_identifier(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _iterate_samples(benchmark: Benchmark, grader: Grader) -> Iterator[dict[str, Any]]:
    task = benchmark.task
    shared = {"entry_identity": grader.entry_identity, "canary": make_canary(benchmark)}
    for part, row_ids, texts in iterate_prompts(benchmark, grader.prompt):
        labels = benchmark.part(part).true_labels().tolist()
        for row_id, text, label in zip(row_ids, texts, labels, strict=True):
            target = task.names[int(label)] if task.names else str(label)
            row = {"row_id": f"{row_id:016x}", "part": part, "prompt": text, "target": target, "label": label}
            yield row | shared
