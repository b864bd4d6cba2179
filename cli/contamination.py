"""`farshift board probe`: is a benchmark's test in a model's training data?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from .sealed import find_named_model
from .terminal import Json, emit_json, exit_if, print_line, show_progress

app = typer.Typer()


@app.command()
def probe(
    on: Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="Whose test rows are looked for.")],
    data: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--data", metavar="PATH", help="Your training texts: Parquet, text, JSON lines, or a folder."),
    ] = None,
    card: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--card", metavar="FILE", help="A model card (TOML): what it declares to have been trained on."),
    ] = None,
    model: Annotated[str, typer.Option("--model", metavar="M", help="A model that is asked for the canary.")] = "",
    json: Json = False,
) -> None:
    """Look for a benchmark's test rows and canary in your own data, card or model. Exit code 1 where one is found.
    Nothing leaves this machine."""
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
