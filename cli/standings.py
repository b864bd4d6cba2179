"""Commands of `farshift board` for tables and exports, and to build a board of the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from ..core.errors import FarshiftError
from ..core.listings.plural import format_count
from .runs import Caption, Label, refuse_latex_options
from .terminal import Json, emit_json, exit_if, print_block, print_line, print_table, show_progress

if TYPE_CHECKING:
    from ..leaderboard.tables.snapshot import Snapshot

app = typer.Typer()

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Board folder.")]
BoardLocation = Annotated[
    str, typer.Argument(metavar="DIR|EXPORT|URL", help="Board folder, export (folder or zip) or URL.")
]
Against = Annotated[
    Optional[str],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option(
        "--baseline",
        metavar="MODEL",
        help="Model with which to compare every entry, with Holm-adjusted tests (default: the board's baseline for "
        "each benchmark).",
    ),
]


@app.command()
def standings(
    location: BoardLocation,
    benchmark: Annotated[
        str, typer.Option("--benchmark", metavar="BENCHMARK", help="Only tables of this benchmark.")
    ] = "",
    baseline: Against = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX tables.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
    caption: Caption = "",
    label: Label = "",
    json: Json = False,
) -> None:
    """Print the tables of a board: rank confidence sets, tie groups, intervals, and aggregates over benchmarks."""
    from ..leaderboard.exports import make_export_files

    formats = [name for name, requested in (("csv", csv), ("latex", latex), ("markdown", markdown)) if requested]
    if len(formats) + json > 1:
        raise FarshiftError("standings: choose one of --json, --csv, --latex and --markdown")
    refuse_latex_options(latex, False, caption, label)
    with show_progress():
        snapshot = _compute_snapshot(location, benchmark, baseline)
    if json:
        return emit_json(snapshot.record())
    if formats:
        (content,) = make_export_files(snapshot, formats[0], {"caption": caption, "label": label}).values()
        return print_block(content.decode().rstrip())
    _print_tables(snapshot)


def _compute_snapshot(location: str, benchmark: str = "", baseline: str | None = None) -> Snapshot:
    from ..leaderboard.operations.locations import open_board_view
    from ..leaderboard.tables.snapshot import take_snapshot

    with open_board_view(location) as board:
        return take_snapshot(board, benchmark, baseline)


def _print_tables(snapshot: Snapshot) -> None:
    from ..leaderboard.exports._table import make_grid

    for table_view in snapshot.views:
        grid = make_grid(table_view)
        title = f"{table_view.table.heading}: {table_view.table.metric}"
        print_table(title, grid.columns, grid.rows, grid.caption + "\n")
    for suite in snapshot.suites:
        _print_suite(suite)
    for removed_entry in snapshot.apart:
        score, removal = removed_entry.score, removed_entry.left
        assert removal is not None
        print_line(f"{removal.kind}: {score.model} on {score.benchmark} ({removed_entry.entry}): {removal.reason}")
    if not snapshot.views:
        print_line("no entries")


def _print_suite(suite: Any) -> None:
    from ..benchmarks.statistics.interval import NotAvailable, read_available

    aggregate = suite.aggregates
    rows = [[row.entry, _format_margin(row.mean), _format_margin(row.iqm)] for row in aggregate.rows]
    over = format_count(len(aggregate.over), "benchmark")
    title = f"Mean normalised OOD score over {over}, {suite.budget} budget (0 chance, 1 best)"
    print_table(title, ["model", "mean", "interquartile mean"], rows, aggregate.interval)
    for row in aggregate.incomplete:
        print_line(f"not aggregated: {row.entry} lacks {', '.join(row.missing)}")
    for pair in suite.concurrences:
        tau = read_available(_format_tau, pair.to_dict())
        shown_tau = tau.reason if isinstance(tau, NotAvailable) else tau
        print_line(
            f"concurrence {pair.left}, {pair.right}: {shown_tau} ({format_count(pair.entries, 'entry', 'entries')})"
        )


def _format_tau(record: Mapping[str, Any]) -> str:
    return f"{record['tau']:+.2f} [{record['low']:+.2f}, {record['high']:+.2f}]"


def _format_margin(interval: Any) -> str:
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


@app.command()
def export(
    location: BoardLocation,
    out: Annotated[
        Path, typer.Option("--out", metavar="PATH", help="Output folder or file; an existing one is updated.")
    ],
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help="Export only the tables: csv, latex, markdown, hf, eee, or the name of a plug-in format.",
        ),
    ] = "",
    benchmark: Annotated[
        str, typer.Option("--benchmark", metavar="BENCHMARK", help="Only tables of this benchmark.")
    ] = "",
    baseline: Against = None,
    dataset: Annotated[
        str, typer.Option("--dataset", metavar="OWNER/NAME", help="For hf: Hub data set that hosts the benchmark.")
    ] = "",
    source: Annotated[
        str, typer.Option("--source", metavar="URL", help="For hf and eee: public URL of the board.")
    ] = "",
    caption: Caption = "",
    label: Label = "",
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit code 1 if a file differs from the board.")
    ] = False,
    json: Json = False,
) -> None:
    """Export a board for verification, or its tables in another format.

    Without --as, the ledger, submissions and scores of a board folder are exported. Table formats: CSV, LaTeX,
    Markdown, Hugging Face Community Evals (hf), EveryEvalEver (eee)."""
    if not form:
        if benchmark or baseline or dataset or source or caption or label or check:
            raise FarshiftError(
                "export: without --as F the whole board is exported: leave out the options of tables, or add --as F"
            )
        return _export_board(Path(location), out, json)
    from ..leaderboard.exports import list_differences
    from ..leaderboard.exports import write_export as go

    with show_progress():
        snapshot = _compute_snapshot(location, benchmark, baseline)
    options = {"dataset": dataset, "source": source, "caption": caption, "label": label}
    if check:
        wrong = list_differences(snapshot, form, out, options)
        if json:
            emit_json({"format": form, "differences": wrong})
        for text in () if json else wrong or [f"{out}: up to date"]:
            print_line(text)
        return exit_if(bool(wrong))
    files = go(snapshot, form, out, options)
    if json:
        return emit_json({"format": form, "files": [str(path) for path in files]})
    print_line(f"{out}: {len(files)} {'file' if len(files) == 1 else 'files'}")


def _export_board(folder: Path, out: Path, json: bool) -> None:
    from ..leaderboard.board import Board
    from ..leaderboard.operations.export import export_board as go

    with show_progress():
        summary = go(Board(folder), out)
    if json:
        return emit_json(summary.__dict__ | {"out": str(out)})
    records, files = format_count(summary.records, "record"), format_count(summary.files, "file")
    print_line(f"{out}: {records}, {files} ({summary.new} new), head {summary.head}")


@app.command()
def build(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Board folder to create or to resume.")],
    suite: Annotated[str, typer.Option("--suite", metavar="SUITE", help="Only benchmarks of this suite.")] = "",
    benchmark: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--benchmark", metavar="BENCHMARK", help="Only this benchmark. May be repeated."),
    ] = None,
    baseline: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--only", metavar="NAME", help="Only this baseline. May be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Number of processes.")] = 2,
    json: Json = False,
) -> None:
    """Build a board of the shipped baselines from their recorded predictions.

    The predictions are packed, submitted and verified, and the web pages are written. An interrupted build is
    resumed."""
    from ._baseline_board import build_board

    with show_progress():
        built = build_board(folder, suite, benchmark or [], baseline or [], workers)
    if json:
        emit_json(built.record())
    else:
        print_block(str(built))
    exit_if(bool(built.differences))
