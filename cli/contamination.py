"""`farshift board probe`: is a benchmark's test set in a model's training data?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from .sealed import find_named_model
from .terminal import Json, emit_json, exit_if, print_line, show_progress

app = typer.Typer()


@app.command()
def probe(
    on: Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="Benchmark whose test rows to search for.")],
    data: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--data", metavar="PATH", help="Training data to search: a Parquet, text or JSON lines file, or a folder."
        ),
    ] = None,
    card: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--card", metavar="FILE", help="Model card (TOML) whose declared training data to check."),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", metavar="MODEL", help="Model to prompt for the canary, as for farshift evaluate.")
    ] = "",
    json: Json = False,
) -> None:
    """Search your data, model card or model for a benchmark's test rows and canary.

    A canary is a unique string that marks the benchmark's text. Exit code 1 if anything is found. No data leave this
    machine unless --model is a remote model."""
    from ..leaderboard.contamination.probing import describe_record, has_findings
    from ..leaderboard.contamination.probing import probe as go

    with show_progress():
        findings = go(on, data, card, find_named_model(model, on, [])[0] if model else None)
    if json:
        emit_json(findings)
    else:
        for record in findings:
            print_line(describe_record(record))
    exit_if(has_findings(findings))
