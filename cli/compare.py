"""`farshift compare`, `robustness`, `recovered` and `plot`: runs held against one another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .runs import Caption, Label, Latex, NoNote, Other, RunPath, Runs, Title, latex_alone, run_path
from .terminal import Json, block, emit_json, line, table, watched

app = typer.Typer()


@app.command()
def compare(
    left: RunPath,
    right: Other,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--plot", metavar="FILE", help="Also draw a figure: .png, .svg or .pdf."),
    ] = None,
    title: Title = "",
    no_note: NoNote = False,
    full: Annotated[bool, typer.Option("--full", help="Also each severity, each group, and exact tests.")] = False,
    latex: Latex = False,
    caption: Caption = "",
    label: Label = "",
    json: Json = False,
) -> None:
    """Compare two runs on the same rows: the paired difference, with its interval."""
    from ..benchmarks.comparison.compare_full import compare_in_full as go
    from ..benchmarks.plot import writable
    from ..benchmarks.plot._compare import draw_comparison, picture_note

    latex_alone(latex, json, caption, label)
    if plot is None:
        _figure_alone("compare", "--plot FILE", title, no_note)
    else:
        writable(plot)  # said before minutes are spent
    with watched():
        found = go(left, right)
        file = None if plot is None else draw_comparison(found, plot, title=title, note=not no_note)
    if json:
        return emit_json(found | ({} if file is None else {"file": str(file)}))
    if latex:
        from ..benchmarks.tables._difference import rendered

        return block(rendered(found, full, caption, label).rstrip())
    rows = [[name, *_difference(item)] for name, item in found["difference"].items()]
    if full:
        rows += [[_severity(point), *_difference(point)] for point in found["severity"]]
        rows += [[f"group {name}", *_difference(item)] for name, item in found["groups"].items()]
    title = f"{found['left']} minus {found['right']} on {found['benchmark']}"
    tests = [_test(view, test) for view, test in found["test"].items() if full and (test["test"] or test["t"])]
    caption = "\n".join([found["interval"], *tests])
    table(title, ["score", "difference", "95 % interval", "distinguishable"], rows, caption)
    if file is not None:
        line(str(file))
        if no_note:
            line(picture_note(found))


def _figure_alone(command: str, needs: str, title: str, no_note: bool) -> None:
    """Refuse what only figures take where none is asked for."""
    from ..core.errors import FarshiftError

    for name, given in (("--title", title), ("--no-note", no_note)):
        if given:
            raise FarshiftError(f"{command}: {name} is of figures: add {needs}, or leave it out")


def _test(view: str, test: dict[str, Any]) -> str:
    if not test["test"]:
        return f"{view}: t test over all that the interval covers: p = {test['t']['p']:.3g}"
    return f"{view}: {test['test']}: p = {test['p']:.3g} ({test['tests']})"


def _severity(point: dict[str, Any]) -> str:
    low, high = point["from"], point["to"]
    return f"{point['view']} at severity {low:g}" + (f" to {high:g}" if high > low else "")


def _difference(found: dict[str, Any]) -> list[str]:
    from ..benchmarks.statistics.interval import read_interval
    from ..benchmarks.statistics.not_available import NotAvailable

    known = read_interval(found)
    if isinstance(known, NotAvailable):
        return ["n/a", known.reason, ""]
    words = {True: "yes", False: "no", None: "needs more seeds"}
    interval = f"[{known.low:+.4f}, {known.high:+.4f}]"
    return [f"{known.value:+.4f}", interval, words[found["distinguishable"]]]


@app.command()
def robustness(
    run: RunPath,
    against: Annotated[
        list[Path],
        typer.Option(
            "--against", metavar="RUN", parser=run_path, help="A baseline's run; at least three. May be repeated."
        ),
    ],
    json: Json = False,
) -> None:
    """Effective robustness: OOD above what the baselines' line predicts from ID (logit scale)."""
    from ..benchmarks.comparison.relate import effective_robustness
    from ..benchmarks.scoring.record import in_words
    from ..benchmarks.statistics.interval import read_interval

    with watched():
        found = effective_robustness(run, against)
    if json:
        return emit_json(found)
    above = in_words(read_interval(found["robustness"]))
    line(f"{found['model']} on {found['benchmark']}: {above} above the line of {found['line']}")
    line(found["interval"])


@app.command()
def recovered(
    run: RunPath,
    floor: Annotated[
        Path, typer.Option("--floor", metavar="RUN", parser=run_path, help="The run that recovers nothing.")
    ],
    ceiling: Annotated[
        Path, typer.Option("--ceiling", metavar="RUN", parser=run_path, help="The run that recovers everything.")
    ],
    view: Annotated[str, typer.Option("--view", help="The rows that are scored.")] = "ood",
    json: Json = False,
) -> None:
    """The share of the gap between two runs that a third one recovers (SGR, PGR, noise-ceiling form)."""
    from ..benchmarks.comparison.relate import gap_recovered
    from ..benchmarks.scoring.record import in_words
    from ..benchmarks.statistics.interval import read_interval

    with watched():
        found = gap_recovered(run, floor, ceiling, view)
    if json:
        return emit_json(found)
    line(
        f"{found['model']} recovers {in_words(read_interval(found['recovered']))} of the gap "
        f"from {found['floor']} to {found['ceiling']}"
    )
    line(found["interval"])


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
        _figure_alone("plot", "--out FIGURE.png without --table", title, no_note)
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
