"""`farshift board ..`: one short function a command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.errors import FarshiftError, UnknownName
from ..core.text import drop_version, format_count
from .options import Count, command
from .output import emit_json, exit_if, print_block, print_line, print_result, print_table
from .progress import show_progress
from .sealed import find_named_model

if TYPE_CHECKING:
    from ..leaderboard.operations.build import BuildReport
    from ..leaderboard.tables.snapshot import Snapshot

app = typer.Typer(help="Create, read, verify, export and serve leaderboards.", no_args_is_help=True)


@command(app, "init")
def board_init(
    folder: Path,
    name: str = "Farshift board",
    store: str | None = None,
    files: str | None = None,
    kind: str = "public",
    json: bool = False,
) -> None:
    """Create a board with its own signing key in an empty folder.

    folder DIR: New or empty folder.
    --name: Board title.
    --store URL: PostgreSQL database for the ledger (default: an SQLite file in DIR).
    --files URL: Object store for submissions and scores: s3://BUCKET/FOLDER (default: DIR).
    --kind: public (one entry per team is ranked; the default), or experiments (every entry is ranked).
    """
    from ..leaderboard.board import Board, get_key_path

    board = Board.init(folder, name, store, files, kind)
    key = f"Its private key is {get_key_path(board.path)}: back it up, keep it secret"
    record = {"board": str(board.path), "name": board.name, "kind": board.kind, "key": board.ledger.key}
    print_result(json, record, f"{board.path}: a new {board.kind} board, {name!r}. {key}")


@command(app, "site")
def board_site(location: str, out: Path | None = None, json: bool = False) -> None:
    """Write the board as static web pages.

    --out DIR: Output folder (default: DIR/site).
    """
    from ..leaderboard.publish.site import build_site
    from ..leaderboard.storage.readers import open_board_view

    if out is None and not Path(location).is_dir():
        raise FarshiftError(f"site: name an output folder for the pages of {location} (--out DIR)")
    with show_progress(), open_board_view(location) as board:
        page = build_site(board, out)
    print_result(json, {"page": str(page)}, f"open {page.resolve()}")


@command(app, "verify")
def board_verify(
    location: str,
    head: str | None = None,
    key: str | None = None,
    workers: Annotated[int, typer.Option(min=0)] = 0,
    json: bool = False,
) -> None:
    """Verify the ledger, and recompute every score from its predictions.

    Exit code 1 if something differs or cannot be recomputed.

    --head HASH: Hash of an earlier head (last record) of the ledger; verification fails if the ledger does not
        contain it.
    --key HEX: Expected public key of the board, in hexadecimal.
    --workers: Number of processes; 0 for one per core.
    """
    from ..leaderboard.operations.verify import verify_at

    with show_progress():
        verification = verify_at(location, head, key, workers=workers)
    if json:
        emit_json(
            {
                "board": location,
                **verification.__dict__,
                "entries_verified": verification.verified,
                "verified": verification.is_complete,
            }
        )
    else:
        state = [f"{verification.verified} verified"] if not verification.differences else []
        state += [format_count(len(verification.differences), "difference")] if verification.differences else []
        not_recomputed = verification.entries_not_recomputed or len(verification.not_recomputed)
        state += [f"{not_recomputed} not recomputed"] if not_recomputed else []
        print_line(f"{location}: {format_count(verification.entries, 'entry', 'entries')}: {', '.join(state)}")
        for text in (*verification.differences, *(f"not recomputed: {why}" for why in verification.not_recomputed)):
            print_line(f"  {text}")
        for text in verification.notes:
            print_line(f"  note: {text}")
        print_line(f"{format_count(verification.records, 'record')}, head {verification.head}, key {verification.key}")
    exit_if(not verification.is_complete)


@command(app, "rescore")
def board_rescore(folder: Path, json: bool = False) -> None:
    """Rescore the entries that an older version of the scorer scored, from their predictions.

    The ledger retains both scores. Exit code 1 if an entry cannot be rescored."""
    from ..leaderboard.board import Board
    from ..leaderboard.operations.submit import rescore_entries

    with show_progress():
        report = rescore_entries(Board(folder))
    if json:
        emit_json(report.__dict__)
    else:
        print_line(f"{folder}: {format_count(len(report.rescored), 'entry', 'entries')} rescored")
        for record in report.rescored:
            before, after = record["before"]["ood"], record["after"]["ood"]
            print_line(
                f"  {record['entry']}: scorer {record['replaces']} to {record['scorer']}, OOD {before:.4f} to "
                f"{after:.4f}"
            )
        for why in report.left:
            print_line(f"  not rescored: {why}")
    exit_if(bool(report.left))


@command(app, "withdraw")
def board_withdraw(folder: Path, entry: str, reason: str, by_board: bool = False, json: bool = False) -> None:
    """Withdraw an entry from the tables.

    The entry stays in the ledger and is listed separately, with the reason.

    entry ENTRY: Entry id: 16 hexadecimal digits, as printed by farshift submit.
    --reason: Reason, shown on the board.
    --by-board: Record the entry as removed by the board operator instead of withdrawn by its team.
    """
    from ..leaderboard.board import Board
    from ..leaderboard.operations.submit import withdraw_entry

    withdraw_entry(Board(folder), entry, reason, by_board)
    state = "removed" if by_board else "withdrawn"
    print_result(json, {"entry": entry, state: reason}, f"{folder}: {entry} is {state}: {reason}")


@command(app, "standings")
def board_standings(
    location: str,
    benchmark: str = "",
    baseline: str | None = None,
    json: bool = False,
) -> None:
    """Print the tables of a board: rank confidence sets, tie groups, intervals, and aggregates over benchmarks.

    `farshift board export --as` writes other formats.
    """
    with show_progress():
        snapshot = _compute_snapshot(location, benchmark, baseline)
    emit_json(snapshot.record()) if json else _print_tables(snapshot)


def _compute_snapshot(location: str, benchmark: str = "", baseline: str | None = None) -> Snapshot:
    from ..leaderboard.storage.readers import open_board_view
    from ..leaderboard.tables.snapshot import take_snapshot

    with open_board_view(location) as board:
        return take_snapshot(board, benchmark, baseline)


def _print_tables(snapshot: Snapshot) -> None:
    from ..leaderboard.exports._table import make_grid

    for table_view in snapshot.views:
        grid = make_grid(table_view)
        title = f"{table_view.heading}: {drop_version(table_view.metric)}"
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
        known = read_available(
            lambda item: f"{item['tau']:+.2f} [{item['low']:+.2f}, {item['high']:+.2f}]", pair.to_dict()
        )
        tau = known.reason if isinstance(known, NotAvailable) else known
        print_line(f"concurrence {pair.left}, {pair.right}: {tau} ({format_count(pair.entries, 'entry', 'entries')})")


def _format_margin(interval: Any) -> str:
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


@command(app, "export")
def board_export(
    location: str,
    out: Path,
    as_: str = "",
    benchmark: str = "",
    baseline: str | None = None,
    dataset: str = "",
    source: str = "",
    caption: str = "",
    label: str = "",
    check: bool = False,
    json: bool = False,
) -> None:
    """Export a board for verification, or its tables in another format.

    Without --as, the ledger, submissions and scores of a board folder are exported. Table formats: CSV, LaTeX,
    Markdown, Hugging Face Community Evals (hf), EveryEvalEver (eee).

    --out PATH: Output folder or file; an existing one is updated.
    --as FORMAT: Export only the tables: csv, latex, markdown, hf, eee, or the name of a plug-in format.
    --dataset OWNER/NAME: For hf: Hub data set that hosts the benchmark.
    --source URL: For hf and eee: public URL of the board.
    --check: Write nothing; exit code 1 if a file differs from the board.
    """
    if not as_:
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
        wrong = list_differences(snapshot, as_, out, options)
        if json:
            emit_json({"format": as_, "differences": wrong})
        for text in () if json else wrong or [f"{out}: up to date"]:
            print_line(text)
        return exit_if(bool(wrong))
    files = go(snapshot, as_, out, options)
    record = {"format": as_, "files": [str(path) for path in files]}
    print_result(json, record, f"{out}: {format_count(len(files), 'file')}")


def _export_board(folder: Path, out: Path, json: bool) -> None:
    from ..leaderboard.board import Board
    from ..leaderboard.operations.export import export_board as go

    with show_progress():
        summary = go(Board(folder), out)
    records, files = format_count(summary.records, "record"), format_count(summary.files, "file")
    text = f"{out}: {records}, {files} ({summary.new} new), head {summary.head}"
    print_result(json, vars(summary) | {"out": str(out)}, text)


@command(app, "build")
def board_build(
    folder: Path,
    suite: str = "",
    benchmark: list[str] | None = None,
    only: list[str] | None = None,
    workers: Count = 2,
    json: bool = False,
) -> None:
    """Build a board of the shipped baselines from their recorded predictions.

    The predictions are packed, submitted and verified, and the web pages are written. An interrupted build is
    resumed.

    folder DIR: Board folder to create or to resume.
    --suite SUITE: Only benchmarks of this suite.
    --benchmark BENCHMARK: Only this benchmark. May be repeated.
    --only NAME: Only this baseline. May be repeated.
    --workers: Number of processes.
    """
    with show_progress():
        built = build_board(folder, suite, benchmark or [], only or [], workers)
    if json:
        emit_json(built.record())
    else:
        print_block(str(built))
    exit_if(bool(built.differences))


def build_board(
    folder: Path, suite: str = "", benchmarks: Sequence[str] = (), baselines: Sequence[str] = (), workers: int = 2
) -> BuildReport:
    """Build, or go on with, the board of all recorded results, or of those of a suite, of some benchmarks, of some
    baselines. Entries are compared with the baseline that has the role plain on a benchmark, else with the multi-layer
    perceptron, or with plain training on the features of a pretrained network.

    Raises `UnknownName` for a benchmark or a baseline without a recorded result."""
    from ..baselines.recipe import load_recipes
    from ..baselines.running.results import find_recorded_run, list_results
    from ..benchmarks.benchmark import load_suite
    from ..leaderboard.operations.build import build

    recorded = list_results()
    known, names = {on for on, _ in recorded}, {name for _, name in recorded}
    for what, selected, available in (("benchmark", benchmarks, known), ("baseline", baselines, names)):
        for name in selected:
            if name not in available:
                raise UnknownName(f"{what} with recorded results", name, available)
    members = set(benchmarks) or ({member.name for member in load_suite(suite)} if suite else known)
    chosen = [(on, name) for on, name in recorded if on in members and (not baselines or name in baselines)]
    if not chosen:
        raise FarshiftError(f"no baseline has a recorded result on {', '.join(sorted(members))}")
    plain = {
        on: _choose_plain([name for other, name in chosen if other == on]) for on in sorted({on for on, _ in chosen})
    }
    plain |= {on: recipe.name for recipe in load_recipes().values() for on in plain if recipe.role_on(on) == "plain"}
    return build(folder, "Farshift baselines", "Farshift", chosen, find_recorded_run, plain, workers)


def _choose_plain(recorded: list[str]) -> str:
    """The plain baseline among the recorded ones of a benchmark that gives none that role."""
    on_features = sorted(name for name in recorded if name.startswith("erm ("))
    return next((name for name in ("mlp", *on_features) if name in recorded), "mlp")


@command(app, "probe")
def board_probe(
    on: str, data: Path | None = None, card: Path | None = None, model: str = "", json: bool = False
) -> None:
    """Search your data, model card or model for a benchmark's test rows and canary.

    A canary is a unique string that marks the benchmark's text. Exit code 1 if anything is found. No data leave this
    machine unless --model is a remote model.

    --on BENCHMARK: Benchmark whose test rows to search for.
    --data PATH: Training data to search: a Parquet, text or JSON lines file, or a folder.
    --card FILE: Model card (TOML) whose declared training data to check.
    --model MODEL: Model to prompt for the canary, as for farshift evaluate.
    """
    from ..leaderboard.contamination import describe_record, is_finding, probe

    with show_progress():
        findings = probe(on, data, card, find_named_model(model, on, [])[0] if model else None)
    if json:
        emit_json(findings)
    else:
        for record in findings:
            print_line(describe_record(record))
    exit_if(any(map(is_finding, findings)))
