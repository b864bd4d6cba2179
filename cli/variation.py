"""`farshift variation`: where the noise of a score comes from."""

from __future__ import annotations

from typing import Any

import typer

from .runs import Runs
from .terminal import Json, emit_json, table, watched

app = typer.Typer()


@app.command()
def variation(runs: Runs, json: Json = False) -> None:
    """Variance components of scores: rows, their clusters, training seeds, draws of the data."""
    from ..benchmarks.comparison.variation import variation as go

    with watched():
        found = go(*runs)
    if json:
        return emit_json(found)
    parts = {view: record["components"] for view, record in found["views"].items()}
    rows = [
        [name.replace("_", " "), *map(_share, (parts["id"][name], parts["ood"][name]))]
        for name in parts["id"]
        if parts["id"][name] or parts["ood"][name]
    ]
    rows += [["total variance", *(f"{found['views'][view]['total']:.4f}" for view in ("id", "ood"))]]
    table(
        f"{found['model']} on {found['benchmark']} ({found['metric']})", ["source", "ID", "OOD"], rows, found["meaning"]
    )


def _share(part: dict[str, Any] | None) -> str:
    return "" if part is None else f"{part['share']:.1%}"
