"""`farshift plot`: runs as a figure or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from .runs import Caption, Label, NoNote, Runs, Title, refuse_figure_options
from .terminal import Json, emit_json, print_block, show_progress

app = typer.Typer()


@app.command()
def plot(
    runs: Runs,
    what: Annotated[
        str,
        typer.Option(
            "--what",
            metavar="FIGURE",
            help="Figure: gap (ID and OOD scores), severity (score by severity of the shift), id_ood (OOD against ID "
            "scores), noise (memorised and corrected labels), calibration (reliability diagrams), or the name of "
            "a plug-in.",
        ),
    ] = "gap",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out",
            metavar="FILE",
            help="Image to write: .png, .svg or .pdf; with --table, text file to write (default: print the table).",
        ),
    ] = None,
    title: Title = "",
    no_note: NoNote = False,
    form: Annotated[
        str,
        typer.Option(
            "--table",
            metavar="FORMAT",
            help="Write a table instead of a figure: latex, markdown, csv, or the name of a plug-in format.",
        ),
    ] = "",
    caption: Caption = "",
    label: Label = "",
    json: Json = False,
) -> None:
    """Plot runs as a figure, or write their scores as a table."""
    from ..benchmarks.comparison.compare_full import find_leaders
    from ..benchmarks.plot import draw_plot, get_plot_note
    from ..benchmarks.scoring.score import score as go
    from ..benchmarks.tables import render_table
    from ..core.errors import FarshiftError

    if bool(form) == (out is not None and not form):
        raise FarshiftError("plot: name an image file to write (--out FIGURE.png) or a table format (--table markdown)")
    if form and out is not None and out.suffix in (".png", ".svg", ".pdf"):
        raise FarshiftError(f"plot: {out} is an image file, and --table {form} writes text: leave out one of the two")
    if form:
        refuse_figure_options("plot", "--out FIGURE.png without --table", title, no_note)
    for name, value in (("caption", caption), ("label", label)):
        if value and not form:
            raise FarshiftError(f"plot: --{name} applies to tables: add --table latex, or leave it out")
    with show_progress():
        scores = [go(path) for path in runs]
        leads = find_leaders(runs) if form == "latex" else None
    if form:
        text = render_table(scores, form, caption=caption, label=label, leaders=leads)
        if out is not None:
            from ..core.files import write_atomically

            write_atomically(out, text.encode())
        return (
            emit_json({"table": text, "file": None if out is None else str(out)})
            if json
            else print_block(text.rstrip())
        )
    assert out is not None
    file = draw_plot(scores, what, out, title=title, note=not no_note)
    record = {"file": str(file), "what": what, "runs": len(runs)}
    note = {"note": get_plot_note(scores, what)} if no_note else {}
    if json:
        return emit_json(record | note)
    print_block("\n".join([str(file), *note.values()]))
