"""Commands of `farshift board` for tables, pages and exports, and to build a board of the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ..core.errors import FarshiftError
from ..core.listings.plural import counted
from .runs import Caption, Label, refuse_latex_options
from .terminal import Json, block, emit_json, exit_if, line, table, watched

if TYPE_CHECKING:
    from ..leaderboard.tables.snapshot import Snapshot

app = typer.Typer()

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The board's folder.")]
Place = Annotated[
    str, typer.Argument(metavar="DIR|EXPORT|URL", help="A board's folder, an export (folder or zip), or its address.")
]
Against = Annotated[
    Optional[str],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option("--baseline", metavar="MODEL", help="Compare every entry with this model (adjusted by Holm)."),
]


@app.command()
def standings(
    place: Place,
    benchmark: Annotated[str, typer.Option("--benchmark", metavar="B", help="Only tables of this benchmark.")] = "",
    baseline: Against = None,
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values on stdout.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="LaTeX tables on stdout.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown tables on stdout.")] = False,
    caption: Caption = "",
    label: Label = "",
    json: Json = False,
) -> None:
    """Print the tables: rank sets, tie groups, intervals; what is listed separately; the aggregate over benchmarks."""
    from ..leaderboard.exports import exported

    forms = [name for name, wanted in (("csv", csv), ("latex", latex), ("markdown", markdown)) if wanted]
    if len(forms) + json > 1:
        raise FarshiftError("standings: choose one of --json, --csv, --latex and --markdown")
    refuse_latex_options(latex, False, caption, label)
    with watched():
        found = _snapshot(place, benchmark, baseline)
    if json:
        return emit_json(found.record())
    if forms:
        (content,) = exported(found, forms[0], {"caption": caption, "label": label}).values()
        return block(content.decode().rstrip())
    _print(found)


def _snapshot(place: str, benchmark: str = "", baseline: str | None = None) -> Snapshot:
    from ..leaderboard.operations.places import viewed
    from ..leaderboard.tables.snapshot import take_snapshot

    with viewed(place) as board:
        return take_snapshot(board, benchmark, baseline)


def _print(found: Snapshot) -> None:
    from ..leaderboard.exports._grid import grid

    for table_view in found.views:
        shown = grid(table_view)
        title = f"{table_view.table.heading}: {table_view.table.metric}"
        table(title, shown.columns, shown.rows, shown.caption + "\n")
    for suite in found.suites:
        _print_suite(suite)
    for one in found.apart:
        score, left = one.score, one.left
        assert left is not None
        line(f"{left.kind}: {score.model} on {score.benchmark} ({one.entry}): {left.reason}")
    if not found.views:
        line("no entries")


def _print_suite(suite: Any) -> None:
    from ..benchmarks.statistics.not_available import NotAvailable, read_available

    found = suite.found
    rows = [[row.entry, _margin(row.mean), _margin(row.iqm)] for row in found.rows]
    over = counted(len(found.over), "benchmark")
    title = f"Mean normalised OOD score over {over}, {suite.budget} budget (0 chance, 1 best)"
    table(title, ["model", "mean", "interquartile mean"], rows, found.interval)
    for row in found.incomplete:
        line(f"apart: {row.entry} lacks {', '.join(row.missing)}")
    for pair in suite.concurrences:
        tau = read_available(_tau, pair.to_dict())
        words = tau.reason if isinstance(tau, NotAvailable) else tau
        line(f"concurrence {pair.left}, {pair.right}: {words} ({counted(pair.entries, 'entry', 'entries')})")


def _tau(record: Mapping[str, Any]) -> str:
    return f"{record['tau']:+.2f} [{record['low']:+.2f}, {record['high']:+.2f}]"


def _margin(found: Any) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


@app.command()
def export(
    place: Place,
    out: Annotated[
        Path, typer.Option("--out", metavar="PATH", help="The folder (or file) to write or bring up to date.")
    ],
    form: Annotated[
        str,
        typer.Option(
            "--as", metavar="F", help="Only its tables: as csv, latex, markdown, hf, eee, or a format of your own."
        ),
    ] = "",
    benchmark: Annotated[str, typer.Option("--benchmark", metavar="B", help="Only tables of this benchmark.")] = "",
    baseline: Against = None,
    dataset: Annotated[
        str, typer.Option("--dataset", metavar="OWNER/NAME", help="For hf: the Hub data set that hosts the benchmark.")
    ] = "",
    source: Annotated[
        str, typer.Option("--source", metavar="URL", help="For hf and eee: where the board can be read.")
    ] = "",
    caption: Caption = "",
    label: Label = "",
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: exit code 1 where a file is not what the board gives.")
    ] = False,
    json: Json = False,
) -> None:
    """Export a board: all that verifying it needs, or its tables in another format.

    Without `--as`: ledger, submissions and scores of a board's folder. Formats of tables: CSV, LaTeX, Markdown, Hugging
    Face Community Evals (hf), EveryEvalEver (eee)."""
    if not form:
        if benchmark or baseline or dataset or source or caption or label or check:
            raise FarshiftError("export: the whole board is exported; choose a format of its tables (--as F)")
        return _export_board(Path(place), out, json)
    from ..leaderboard.exports import publish as go
    from ..leaderboard.exports import unlike

    with watched():
        found = _snapshot(place, benchmark, baseline)
    options = {"dataset": dataset, "source": source, "caption": caption, "label": label}
    if check:
        wrong = unlike(found, form, out, options)
        if json:
            emit_json({"format": form, "differences": wrong})
        for text in () if json else wrong or [f"{out}: as the board gives it"]:
            line(text)
        return exit_if(bool(wrong))
    files = go(found, form, out, options)
    if json:
        return emit_json({"format": form, "files": [str(path) for path in files]})
    line(f"{out}: {len(files)} {'file' if len(files) == 1 else 'files'}")


def _export_board(folder: Path, out: Path, json: bool) -> None:
    from ..leaderboard.board import Board
    from ..leaderboard.operations.export import export as go

    with watched():
        found = go(Board(folder), out)
    if json:
        return emit_json(found.__dict__ | {"out": str(out)})
    records, files = counted(found.records, "record"), counted(found.files, "file")
    line(f"{out}: {records}, {files} ({found.new} new), head {found.head}")


@app.command()
def build(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The board's folder: created, or continued.")],
    suite: Annotated[str, typer.Option("--suite", metavar="S", help="Only benchmarks of this suite.")] = "",
    benchmark: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--benchmark", metavar="B", help="Only this benchmark. May be repeated."),
    ] = None,
    baseline: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--only", metavar="NAME", help="Only this baseline. May be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Processes at work.")] = 2,
    json: Json = False,
) -> None:
    """Build a board of the shipped baselines from their recorded predictions: pack, submit, verify, write the pages."""
    from ._baseline_board import build_board

    with watched():
        built = build_board(folder, suite, benchmark or [], baseline or [], workers)
    if json:
        emit_json(built.record())
    else:
        block(str(built))
    exit_if(bool(built.differences))
