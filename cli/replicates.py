"""`farshift replicates`: mean and standard deviation over seeds or folds."""

from __future__ import annotations

import typer

from .runs import Runs
from .terminal import Json, emit_json, table, watched

app = typer.Typer()


@app.command()
def replicates(runs: Runs, json: Json = False) -> None:
    """Mean and standard deviation over the seeds of a run, or over runs on several folds of a set."""
    from ..benchmarks.comparison.replicates import replicates as go

    with watched():
        found = go(*runs)
    if json:
        return emit_json(found)
    rows = [
        [view.upper(), f"{one['mean']:.3f}", "" if one["sd"] is None else f"{one['sd']:.3f}"]
        for view, one in found["views"].items()
    ]
    title = f"{found['model']} on {', '.join(found['benchmarks'])} ({found['metric']})"
    table(title, ["score", "mean", "sd"], rows, f"over {found['replicates']}; sd: sample standard deviation (n - 1)")
