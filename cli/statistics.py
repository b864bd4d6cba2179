"""`farshift detectable`: one short function a command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .runs import run_path
from .terminal import Json, emit_json, table, watched

app = typer.Typer()


@app.command()
def detectable(
    benchmark: Annotated[str, typer.Argument(help="The benchmark's name, such as scan/length.")],
    runs: Annotated[
        Optional[list[Path]],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option(
            "--runs",
            metavar="RUN",
            parser=run_path,
            help="A run to measure it on; may be repeated. Default: the recorded baselines.",
        ),
    ] = None,
    assumed: Annotated[
        bool,
        typer.Option(
            "--assumed", help="Assume that two entries disagree on a tenth of the rows, instead of measuring."
        ),
    ] = False,
    seeds: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--seeds", min=2, help="Plan for this many seeds per run."),
    ] = None,
    json: Json = False,
) -> None:
    """How small a difference between two entries can the benchmark show?"""
    from ..benchmarks.comparison.detecting import VIEWS
    from ..benchmarks.comparison.detecting import detectable as go

    with watched():
        found = go(benchmark, [] if assumed else runs or _recorded(benchmark), seeds)
    if json:
        return emit_json(found)
    rows = [[view, *_row(found[view])] for view in VIEWS]
    title = f"{found['benchmark']} ({found['metric']})"
    table(title, ["score", "detectable", "rows", "clusters"], rows, found["how"])


def _recorded(benchmark: str) -> list[Any]:
    from ..baselines.running.results import recorded, results

    names = [name for on, name in results() if on == benchmark]
    return [recorded(benchmark, name) for name in names] if len(names) > 1 else []


def _row(found: dict[str, Any]) -> list[Any]:
    from ..benchmarks.statistics.not_available import NotAvailable, read_available

    known = read_available(lambda record: float(record["value"]), found)
    value = known.reason if isinstance(known, NotAvailable) else f"{known:.4f}"
    if found.get("pairs"):
        value += f" [{found['low']:.4f}, {found['high']:.4f}]"
    return [value, found["rows"], "" if found["clusters"] is None else f"{found['clusters']} ({found['clusters_are']})"]
