"""`farshift benchmarks`: one short function per command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.listings.plural import format_count
from .finding import Generated, OfKind, OfLicence, OfModality, OfSource, OfState, Words
from .runs import print_scores
from .terminal import Json, emit_json, print_catalogue, print_line, print_wrapped, show_progress

if TYPE_CHECKING:
    from ..benchmarks.listing import BenchmarkEntry

Name = Annotated[str, typer.Argument(metavar="NAME", help="Benchmark name, such as scan/length.")]

app = typer.Typer(help="List, show, export and import benchmarks.", no_args_is_help=True)


@app.command("list")
def benchmarks_list(
    search: Words = None,
    kind: OfKind = None,
    suite: Annotated[str | None, typer.Option("--suite", metavar="SUITE", help="Suite, such as core or full.")] = None,
    source: OfSource = None,
    modality: OfModality = None,
    generated: Generated = None,
    state: OfState = None,
    licence: OfLicence = "",
    all_: Annotated[bool, typer.Option("--all", help="List each benchmark on its own line.")] = False,
    json: Json = False,
) -> None:
    """List the benchmarks, or those that match the search words and options.

    A family (the noise rates and random draws of one label-noise rule) takes one line; --all and --json list every
    benchmark."""
    from ..benchmarks.listing import benchmarks

    matches = benchmarks(
        " ".join(search or ()),
        kind=kind,
        suite=suite,
        source=source,
        modality=modality,
        generated=generated,
        state=state,
        licence=licence,
    )
    if json:
        return emit_json(matches.to_dicts())
    families: dict[str, list[BenchmarkEntry]] = {}
    for benchmark in matches:
        families.setdefault(benchmark.name if all_ else benchmark.family, []).append(benchmark)
    rows = []
    for members in families.values():
        first, more = members[0], f" and {len(members) - 1} more" if len(members) > 1 else ""
        cells = [first.task, ", ".join(first.metrics), ", ".join(first.selection), first.title]
        rows.append([first.name + more, first.kind, *cells])
    folded = "" if len(rows) == len(matches) else f", {format_count(len(rows), 'family', 'families')}; --all lists each"
    caption = format_count(len(matches), "benchmark") + folded
    print_catalogue(["benchmark", "kind", "task", "metrics", "selection rules", "title"], rows, caption)


@app.command("metrics")
def benchmarks_metrics(json: Json = False) -> None:
    """List the metrics: tasks, whether higher or lower is better, options, definition."""
    from ..benchmarks.listing import list_metrics

    records = list_metrics()
    if json:
        return emit_json(records)
    rows = [
        [f"{m['name']}@{m['version']}", ", ".join(m["tasks"]), m["better"], ", ".join(m["options"]), m["title"]]
        for m in records
    ]
    print_catalogue(["metric", "task", "better", "options", "definition"], rows)


@app.command("show")
def benchmarks_show(name: Name, json: Json = False) -> None:
    """Show a benchmark: task, rows, protocol, permitted data, prompt, published results."""
    from ..benchmarks.listing import describe_benchmark

    with show_progress():
        description = describe_benchmark(name)
    if json:
        return emit_json(description)
    print_line(description["title"])
    width = max(len(key) for key, _ in description["lines"])
    for key, value in description["lines"]:
        print_wrapped(f"{key:>{width}}  {value}", width + 2)


@app.command("export")
def benchmarks_export(
    name: Name,
    to: Annotated[str, typer.Option("--to", metavar="TOOL", help="Target runner: lm-eval or inspect.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder.")],
    json: Json = False,
) -> None:
    """Export a text benchmark as a task for another evaluation runner."""
    from ..benchmarks.interop import export_benchmark

    with show_progress():
        record = export_benchmark(name, to, out)
    emit_json(record) if json else print_line(f"{out}: {format_count(record['rows'], 'row')}. {record['command']}")


@app.command("import")
def benchmarks_import(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Per-sample log files of the runner; each invocation of the runner counts as one seed.",
        ),
    ],
    source: Annotated[
        str, typer.Option("--from", metavar="TOOL", help="Runner that wrote the logs: lm-eval or inspect.")
    ],
    on: Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="Benchmark that was exported.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Run folder to write.")],
    name: Annotated[
        str, typer.Option("--name", help="Model name on the run card (default: the name in the logs).")
    ] = "",
    json: Json = False,
) -> None:
    """Import the logs of another evaluation runner as a run, and score it."""
    from ..benchmarks.interop import import_run

    with show_progress():
        run = import_run(files, source, on, out, name)
    print_scores(run, json)
