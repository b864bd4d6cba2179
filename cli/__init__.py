"""The command line: one short function a command. `farshift --help` imports nothing heavy."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from . import streams
from .baselines import app as baselines_app
from .benchmarks import app as benchmarks_app
from .board import app as submissions_app
from .board import board_app
from .cache import app as cache_app
from .compare import app as compare_app
from .contamination import app as contamination_app
from .intake import app as intake_app
from .paging import page_output
from .plot import app as plot_app
from .reproduce import app as reproduce_app
from .run import run
from .runs import app as runs_app
from .sealed import app as sealed_app
from .serve import app as serve_app
from .splits import app as splits_app
from .standings import app as standings_app
from .team import app as team_app
from .terminal import (
    Json,
    emit_json,
    exit_if,
    forbid_network,
    format_estimate,
    is_debugging,
    print_error,
    print_line,
    print_table,
    show_progress,
)

app = typer.Typer(
    name="farshift",
    help="Benchmark models under distribution shift: versioned splits, a harness, baselines and leaderboards.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(splits_app, name="splits")
app.add_typer(benchmarks_app, name="benchmarks")
app.add_typer(runs_app)
app.add_typer(compare_app)
app.add_typer(plot_app)
app.add_typer(cache_app, name="cache")
app.add_typer(baselines_app, name="baselines")
app.command()(run)
app.add_typer(reproduce_app)
app.add_typer(submissions_app)
board_app.add_typer(sealed_app, name="sealed")
board_app.add_typer(contamination_app)
board_app.add_typer(standings_app)
board_app.add_typer(intake_app)
board_app.add_typer(serve_app)
app.add_typer(board_app, name="board")
app.add_typer(team_app)


@app.command()
def quickstart(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder for the runs and the board.")] = Path(
        "farshift-quickstart"
    ),
    offline: Annotated[bool, typer.Option("--offline", help="Do not access the network.")] = False,
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help="Execution engine: processes or local.")
    ] = "processes",
    json: Json = False,
) -> None:
    """Download one split of each kind of shift, train two baselines on each, score them and build a board."""
    from ._quickstart import run_quickstart as go

    forbid_network(offline)
    with show_progress():
        result = go(out, engine)
    if json:
        return emit_json(result.record())
    columns = ["kind", "benchmark", "baseline", "role", "ID", "OOD", "gap = ID - OOD", "memorised"]
    rows = [
        [
            row["kind"],
            row["benchmark"],
            row["baseline"],
            row["role"],
            *_format_scores(row),
            format_estimate(row["memorised"]),
        ]
        for row in result.rows
    ]
    print_table(
        f"Quick budget: {_describe_budget(result.rows)}. Scores in percent.",
        columns,
        rows,
        "Brackets are 95 % t intervals over test rows and training seeds. Corrupted-label: OOD is the share of\n"
        "wrongly labelled training rows predicted correctly, memorised the share predicted with the wrong label.",
    )
    for name, audit in dict((row["benchmark"], row["audit"]) for row in result.rows if "weak" in row["audit"]).items():
        print_line(f"{name}: {audit}.")
    for item in result.left_out:
        print_line(f"skipped: {item['benchmark']} ({item['kind']}): {item['why']}")
    print_line(f"{result.seconds:.0f} s. Runs: {out / 'runs'}. Board: {result.board}. Open {result.page.resolve()}")


def _describe_budget(rows: Sequence[Mapping[str, Any]]) -> str:
    """The training budget of the rows, in words."""
    seeds = " or ".join(str(count) for count in sorted({row["seeds"] for row in rows}))
    short = sorted({(row["steps"], row["benchmark"]) for row in rows if row["steps"] is not None})
    steps = ", ".join(f"{steps} on {benchmark}" for steps, benchmark in short)
    return f"fewer steps than a full run{f' ({steps})' if steps else ''}, {seeds} seeds"


@app.command()
def doctor(
    sources: Annotated[
        bool,
        typer.Option(
            "--sources",
            help="List each data source and how it is available: cached, generated, downloaded, or from your own copy.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Check the installation: packages, cache, device.

    Exit code 1 if something required is missing."""
    from ._doctor import check_machine, summarise_checks

    checks = check_machine(sources)
    if json:
        emit_json(checks)
    else:
        state_names = {True: "ok", False: "MISSING", None: "optional"}
        print_table(
            "",
            ["check", "state", "detail"],
            [[c["check"], state_names[c["ok"]], c["detail"]] for c in summarise_checks(checks)],
        )
    exit_if(any(check["ok"] is False for check in checks))


def _print_version(requested: bool) -> None:
    if requested:
        from ..core.version import get_version

        print_line(get_version())
        raise typer.Exit


@app.callback()
def _declare_global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _format_scores(row: dict[str, Any]) -> list[str]:
    return [format_estimate(row[name]) for name in ("id", "ood", "gap")]


_INTERRUPTED = "interrupted; finished work is kept, and repeating the command resumes"


_COMPLAINTS: tuple[type[Any], ...] = tuple(
    kind for kind in typer.BadParameter.__mro__ if hasattr(kind, "format_message")
)
"""The command line library's own errors (an unknown option, a missing argument): a class of typer's or of click's, as
the version has it."""


MOVED = {
    "plan": "run BASELINE --on BENCHMARK --dry-run",
    "robustness": "compare RUN BASELINE BASELINE BASELINE --statistic robustness",
    "recovered": "compare RUN FLOOR CEILING --statistic recovered",
    "replicates": "compare RUN .. --statistic replicates",
    "variation": "compare RUN .. --statistic variance",
    "detectable": "compare --on BENCHMARK --statistic detectable",
    "baselines budgets": "baselines list --budgets",
    "baselines published": "baselines list --published",
    "splits lock": "splits show NAME --pin",
    "board queue": "board work DIR --queue",
    "board audit": "board token audit DIR",
    "board state": "submit FILE --to URL --no-wait",
    "board remove": "board withdraw DIR ENTRY --by-board --reason WHY",
    "board reference": "submit FILE --to DIR --reference",
    "board migrate": "board rescore DIR",
    "board rotate-key": "board init DIR --new-key --reason WHY",
    "board publish": "board export BOARD --as FORMAT --out PATH",
    "board seal": "board sealed create",
    "board draw": "board sealed draw",
    "board answer": "board sealed answer",
    "board hand-in": "board sealed submit",
    "board receipt": "board sealed verify",
    "board close": "board sealed close",
    "board windows": "board sealed list",
}
"""The new names of renamed commands, by their old names."""


def _suggest_next(error: Any, message: str) -> str:
    """The available commands after an unknown one, and the usage of a command that got too many arguments."""
    from ..core.errors import shorten_list

    context = getattr(error, "ctx", None)
    if context is None:
        return ""
    path = context.command_path.split()[1:]
    former = re.search(r"No such command '([^']+)'", message)
    if former and (now := MOVED.get(" ".join([*path, former[1]]))):
        return f" It is now: farshift {now}"
    if message.startswith("No such command") and "Did you mean" not in message:
        return f" Available commands: {shorten_list(sorted(getattr(context.command, 'commands', {})))}"
    return f". {context.get_usage()}" if message.startswith("Got unexpected extra") else ""


def build_command() -> Any:
    """The command with all below it. Help is wrapped to the screen: the line breaks within a docstring's paragraphs are
    those of the source file."""
    root = typer.main.get_command(app)
    pending = [root]
    while pending:
        command = pending.pop()
        pending += getattr(command, "commands", {}).values()
        if command.help:
            command.help = "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", command.help))
    return root


def main() -> None:
    """The entry point: an error that a user can cause is printed as one line, with exit code 2; any other too, with
    exit code 70."""
    from ..core.errors import FarshiftError

    streams.configure_streams()
    root = build_command()
    try:
        with page_output():
            status = root.main(prog_name="farshift", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print_error(_INTERRUPTED)
        sys.exit(130)
    except (BrokenPipeError, SystemExit) as error:
        # The command line library ends with 1 on a broken pipe, which is the code of a check that failed.
        if not isinstance(error, BrokenPipeError) and not isinstance(error.__context__, BrokenPipeError):
            raise
        streams.discard_output()
        sys.exit(141)
    except (FarshiftError, OSError) as error:
        if is_debugging():
            raise
        print_error(f"error: {error}")
        sys.exit(2)
    except _COMPLAINTS as error:
        if is_debugging():
            raise
        if message := error.format_message():  # empty if the help was printed instead
            print_error(f"error: {message}{_suggest_next(error, message)}")
        sys.exit(2)
    except Exception as error:
        from ._defect import describe_unexpected

        if is_debugging():
            raise
        message, code = describe_unexpected(error, root, sys.argv[1:])
        print_error(f"error: {message}")
        sys.exit(code)
    if status == 130:
        print_error(_INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)
