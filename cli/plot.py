"""`farshift plot`: runs as a figure or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from .runs import Caption, Label, NoNote, Runs, Title, refuse_figure_options
from .terminal import Json, block, emit_json, watched

app = typer.Typer()


@app.command()
def plot(
    runs: Runs,
    what: Annotated[
        str, typer.Option("--what", metavar="W", help="severity, gap, id_ood, noise, calibration, or one of your own.")
    ] = "gap",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", metavar="FILE", help="The picture to write: .png, .svg or .pdf."),
    ] = None,
    title: Title = "",
    no_note: NoNote = False,
    form: Annotated[
        str,
        typer.Option("--table", metavar="F", help="A table instead: latex, markdown, csv, or a form of your own."),
    ] = "",
    caption: Caption = "",
    label: Label = "",
    json: Json = False,
) -> None:
    """Plot runs as a figure for a paper, or write them as a table."""
    from ..benchmarks.comparison.leaders import leaders
    from ..benchmarks.plot import draw, note_of
    from ..benchmarks.scoring.score import score as go
    from ..benchmarks.tables import render
    from ..core.errors import FarshiftError

    if bool(form) == (out is not None and not form):
        raise FarshiftError("plot: name a picture to write (--out FIGURE.png) or a table (--table markdown)")
    if form and out is not None and out.suffix in (".png", ".svg", ".pdf"):
        raise FarshiftError(f"plot: {out} is named like a picture, and --table {form} is text: leave one of them out")
    if form:
        refuse_figure_options("plot", "--out FIGURE.png without --table", title, no_note)
    for name, given in (("caption", caption), ("label", label)):
        if given and not form:
            raise FarshiftError(f"plot: --{name} is of tables: add --table latex, or leave it out")
    with watched():
        scores = [go(path) for path in runs]
        leads = leaders(runs) if form == "latex" else None
    if form:
        text = render(scores, form, caption=caption, label=label, leaders=leads)
        if out is not None:
            from ..core.files import write_atomically

            write_atomically(out, text.encode())
        return emit_json({"table": text, "file": None if out is None else str(out)}) if json else block(text.rstrip())
    assert out is not None
    file = draw(scores, what, out, title=title, note=not no_note)
    found = {"file": str(file), "what": what, "runs": len(runs)}
    note = {"note": note_of(scores, what)} if no_note else {}
    if json:
        return emit_json(found | note)
    block("\n".join([str(file), *note.values()]))
