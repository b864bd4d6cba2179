"""What benchmarks there are, and what one of them asks."""

from __future__ import annotations

from math import isfinite
from typing import Any

from ..core.plugins import module, named
from ..splits.manifest import known_kind
from .benchmark import benchmarks, find_benchmark, suite
from .canary import guid
from .definition import Ceiling, PromptPin, Touch
from .metrics import Metric


def listing(of_suite: str | None = None, of_kind: str | None = None) -> list[dict[str, Any]]:
    """Every benchmark (of a suite, of a kind of shift), as plain JSON, sorted by name. No data are opened."""
    of_kind = None if of_kind is None else known_kind(of_kind)
    found = []
    for benchmark in benchmarks().values() if of_suite is None else suite(of_suite):
        definition = benchmark.definition
        if of_kind not in (None, benchmark.kind):
            continue
        found.append(
            {
                "name": benchmark.name,
                "kind": benchmark.kind,
                "title": definition.title,
                "split": definition.split,
                "suites": definition.suites,
                "task": definition.task.type,
                "metrics": [metric.signature for metric in benchmark.metrics],
                "selection": definition.protocol.selection,
                "seeds": definition.protocol.seeds,
                "prompt": definition.prompt is not None,
                "parts": list(benchmark.predicted_parts),
            }
        )
    return found


def metrics_listing() -> list[dict[str, Any]]:
    """Every metric, the package's own and those of `FARSHIFT_PATH`, as plain JSON, sorted by name: what it scores,
    which way it runs, what a benchmark may say of it, and what it is."""
    found = []
    for name in sorted(named("benchmarks/metrics", ".py")):
        one = module("benchmarks/metrics", name, "metric")
        options = getattr(one, "OPTIONS", None)
        found.append(
            {
                "name": name,
                "version": one.VERSION,
                "tasks": list(one.TASKS),
                "needs": one.NEEDS,
                "better": one.BETTER,
                "bounds": [end if isfinite(end) else None for end in one.BOUNDS],
                "options": [] if options is None else sorted(options.model_fields),
                "title": (one.__doc__ or "").strip().split("\n\n")[0].replace("\n", " "),
            }
        )
    return found


def _metric(metric: Metric) -> str:
    """A metric's signature, and what the benchmark says of it."""
    if metric.options is None:
        return metric.signature
    said = metric.options.model_dump(exclude_unset=True)
    shown = "; ".join(f"{name} {_plain(value)}" for name, value in said.items() if value)
    return f"{metric.signature} ({shown})" if shown else metric.signature


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return f"of {len(value)}"
    return (
        ", ".join(map(str, value)) if isinstance(value, list) else f"{value:g}" if isinstance(value, float) else value
    )


def described(name: str) -> dict[str, Any]:
    """A benchmark in full: its definition, its identities by selection rule, its rows, and the same in lines of words.

    Opens the split (pulled where it is not here yet) to count rows."""
    benchmark = find_benchmark(name)
    benchmark.check()
    definition, protocol = benchmark.definition, benchmark.definition.protocol
    parts = sorted({"train", *benchmark.predicted_parts})
    rows = {part: len(benchmark.part(part)) for part in parts if benchmark.has_part(part)}
    views = {view: len(benchmark.view(view)[0]) for view in definition.views}
    lines = [
        ("name", f"{name} ({benchmark.kind})"),
        ("split", f"{definition.split}, identity {benchmark.manifest.identity[:16]}"),
        ("task", f"{definition.task.type}: {', '.join(definition.task.inputs)} -> {definition.task.label}"),
        ("metrics", ", ".join(_metric(metric) for metric in benchmark.metrics)),
        ("parts", ", ".join(f"{part} {count:,}" for part, count in rows.items())),
        ("views", ", ".join(f"{view} {count:,}" for view, count in views.items())),
        ("selection", ", ".join(protocol.selection)),
        ("seeds", f"{protocol.seeds} (quick: {protocol.quick_seeds})"),
        ("budget", _ceiling(protocol.ceiling)),
        ("may be touched", _touch(protocol.touch)),
        ("prompt", _prompt(definition.prompt)),
        ("canary", guid(benchmark)),
        *((f"published ({one.mark})", f"{one.model}: {one.score}, {one.source}") for one in definition.references),
        *([("notes", definition.notes)] if definition.notes else []),
    ]
    return {
        "title": definition.title,
        "definition": definition.model_dump(mode="json"),
        "identities": {rule: benchmark.identity("full", None, rule) for rule in protocol.selection},
        "rows": rows,
        "views": views,
        "lines": [list(pair) for pair in lines],
    }


def _ceiling(ceiling: Ceiling) -> str:
    named = ((ceiling.steps, "steps"), (ceiling.epochs, "epochs"), (ceiling.device_seconds, "device seconds"))
    return ", ".join(f"at most {value:g} {name}" for value, name in named if value is not None) or "no ceiling"


def _prompt(prompt: PromptPin | None) -> str:
    if prompt is None:
        return "none"
    return (
        f"version {prompt.version}, {prompt.k} examples, read by {prompt.extraction.name}@{prompt.extraction.version}"
    )


def _touch(touch: Touch) -> str:
    found = ["training and validation rows"]
    if touch.ood_val_labels:
        found.append("labels of ood_val")
    if touch.ood_test_inputs:
        found.append("inputs of ood_test")
    if (adaptation := touch.adaptation) is not None:
        found.append(
            f"test-time adaptation (batches of {adaptation.batch_size}, {adaptation.order} order, "
            f"reset: {adaptation.reset})"
        )
    return ", ".join(found)
