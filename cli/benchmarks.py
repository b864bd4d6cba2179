"""`farshift benchmarks`: one short function per command."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from ..core.text import format_count
from .options import command
from .output import Columns, emit_json, print_catalogue, print_line, print_records, print_result, print_wrapped
from .progress import show_progress
from .run import print_scores

app = typer.Typer(help="List, show, export and import benchmarks.", no_args_is_help=True)


@command(app, "list")
def benchmarks_list(
    search: list[str] | None = None,
    kind: str | None = None,
    suite: str | None = None,
    source: str | None = None,
    modality: str | None = None,
    generated: bool | None = None,
    state: str | None = None,
    licence: str = "",
    all_: bool = False,
    json: bool = False,
) -> None:
    """List the benchmarks, or those that match the search words and options.

    A family (the noise rates and random draws of one label-noise rule) takes one line; --all and --json list every
    benchmark.

    --suite SUITE: Suite, such as core or full.
    --all: List each benchmark on its own line.
    """
    from ..benchmarks.listing import benchmarks, count_suites
    from ..splits.catalogue import fold_names

    find = partial(
        benchmarks,
        kind=kind,
        suite=suite,
        source=source,
        modality=modality,
        generated=generated,
        state=state,
        licence=licence,
    )
    matches = find(" ".join(search or ()))
    if json:
        return emit_json(matches.to_dicts())
    families: dict[str, list[list[str]]] = {}
    for benchmark, cells in zip(matches, matches.cells(), strict=True):
        families.setdefault(benchmark.name if all_ else benchmark.family, []).append(list(cells.values()))
    rows = [[fold_names([row[0] for row in members]), *members[0][1:]] for members in families.values()]
    folded = "" if len(rows) == len(matches) else f", {format_count(len(rows), 'family', 'families')}; --all lists each"
    columns = ["benchmark", "kind", "tags", "task", "training rows", "prompt", "state", "title"]
    print_catalogue(columns, rows, format_count(len(matches), "benchmark") + folded, search or (), find)
    if not rows or not (search or suite):
        suites = ", ".join(f"{name} {count}" for name, count in count_suites().items())
        print_wrapped(f"Suites, and the benchmarks of each (--suite NAME): {suites}")


@command(app, "metrics")
def benchmarks_metrics(json: bool = False) -> None:
    """List the metrics: tasks, whether higher or lower is better, options, definition."""
    from ..benchmarks.listing import list_metrics

    columns: Columns = {
        "metric": "name",
        "task": "tasks",
        "better": "better",
        "options": "options",
        "version": lambda metric: str(metric["version"]),
        "definition": "title",
    }
    print_records(json, list_metrics(), columns, show=print_catalogue)


@command(app, "show")
def benchmarks_show(name: str, json: bool = False) -> None:
    """Show a benchmark: task, rows, protocol, permitted data, prompt, published results.

    name BENCHMARK: Benchmark name, such as scan/length.
    """
    from ..benchmarks.listing import describe_benchmark

    with show_progress():
        description = describe_benchmark(name)
    if json:
        return emit_json(description)
    print_line(description["title"])
    width = max(len(key) for key, _ in description["lines"])
    for key, value in description["lines"]:
        print_wrapped(f"{key:>{width}}  {value}", width + 2)


@command(app, "export")
def benchmarks_export(name: str, to: str, out: Path, json: bool = False) -> None:
    """Export a text benchmark as a task for another evaluation runner.

    name BENCHMARK: Benchmark name, such as scan/length.
    --to TOOL: Target runner: lm-eval or inspect.
    --out DIR: Output folder.
    """
    from ..benchmarks.interop import export_benchmark

    with show_progress():
        record = export_benchmark(name, to, out)
    print_result(json, record, f"{out}: {format_count(record['rows'], 'row')}. {record['command']}")


@command(app, "import")
def benchmarks_import(files: list[Path], from_: str, on: str, out: Path, name: str = "", json: bool = False) -> None:
    """Import the logs of another evaluation runner as a run, and score it.

    files FILE...: Per-sample log files of the runner; each invocation of the runner counts as one seed.
    --from TOOL: Runner that wrote the logs: lm-eval or inspect.
    --on BENCHMARK: Benchmark that was exported.
    --out DIR: Run folder to write.
    --name: Model name on the run card (default: the name in the logs).
    """
    from ..benchmarks.interop import import_run

    with show_progress():
        run = import_run(files, from_, on, out, name)
    print_scores(run, json)
