"""`farshift compare`: runs compared by one statistic; `farshift plot`: runs as a figure or a table."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import FarshiftError, UnknownName
from ..core.text import drop_version, format_count
from .options import Runs, command, parse_run_path
from .output import emit_json, print_block, print_line, print_table
from .progress import show_progress

app = typer.Typer()


@command(app)
def compare(
    runs: Annotated[list[Path] | None, typer.Argument(parser=parse_run_path)] = None,
    statistic: str = "difference",
    full: bool = False,
    view: str = "ood",
    on: str = "",
    assumed: bool = False,
    seeds: Annotated[int | None, typer.Option(min=2)] = None,
    json: bool = False,
) -> None:
    """Compare runs: the paired difference of two runs with its interval, or another statistic.

    runs RUN: Folder of a finished run, or a recorded result: baseline:NAME@BENCHMARK (quick budget) or
        baseline:NAME:full@BENCHMARK (full budget).
    --statistic STATISTIC: Statistic: difference (score of RUN minus score of OTHER on the same rows; arguments:
        RUN OTHER), robustness (effective robustness of RUN relative to a line fitted to baselines; arguments:
        RUN and three or more BASELINEs), recovered (share of the gap from FLOOR to CEILING that RUN recovers;
        arguments: RUN FLOOR CEILING), replicates (mean and standard deviation over the seeds of a RUN, or over
        one RUN per fold of a data set), variance (variance components of a RUN), detectable (minimum detectable
        difference on a benchmark; needs --on).
    --full: Also print the difference at each severity and in each group, and exact tests.
    --view VIEW: For recovered: view (group of test rows) to score, such as id or ood.
    --on BENCHMARK: For detectable: benchmark name, such as scan/length.
    --assumed: For detectable: assume that two models disagree on 10 % of the rows (default: measure it on the
        RUNs, or on the recorded baselines).
    --seeds: For detectable: number of seeds per run to plan for (default: that of the RUNs or recorded baselines).
    """
    options: dict[str, dict[str, object]] = {
        "difference": {"--full": full},
        "recovered": {"--view": view if view != "ood" else ""},
        "detectable": {"--on": on, "--assumed": assumed, "--seeds": seeds},
    }
    for owner, values in options.items():
        for name, value in values.items():
            if value and owner != statistic:
                raise FarshiftError(f"compare: {name} goes with --statistic {owner}, not {statistic}")
    if statistic not in STATISTICS:
        raise UnknownName("statistic", statistic, STATISTICS)
    paths, (usage, least, most) = runs or [], STATISTICS[statistic]
    if not least <= len(paths) <= most:
        raise FarshiftError(f"compare --statistic {statistic} takes {usage}, not {format_count(len(paths), 'run')}")
    if statistic == "detectable" and not on:
        raise FarshiftError("compare --statistic detectable: name the benchmark (--on BENCHMARK)")
    if assumed and paths:
        raise FarshiftError("compare: --assumed uses no runs: leave out the runs or --assumed")
    with show_progress():
        record = _measure(statistic, paths, view, on, assumed, seeds)
    if json:
        emit_json(record)
    elif statistic == "difference":
        _print_difference(record, full)
    else:
        printers = {
            "robustness": _print_robustness,
            "recovered": _print_recovered,
            "replicates": _print_replicates,
            "variance": _print_variance,
            "detectable": _print_detectable,
        }
        printers[statistic](record)


STATISTICS = {
    "difference": ("two runs (RUN OTHER; for more: farshift plot RUN.. --table markdown)", 2, 2),
    "recovered": ("three runs (RUN FLOOR CEILING)", 3, 3),
    "detectable": ("runs on one benchmark", 0, inf),
    "robustness": ("a run and at least three baselines (RUN BASELINE BASELINE BASELINE ..)", 4, inf),
    "replicates": ("a run, or a run for each fold of a data set", 1, inf),
    "variance": ("one run", 1, 1),
}
"""The runs that each statistic takes: in words, and the least and most."""


def _measure(
    statistic: str, paths: Sequence[Path], view: str, on: str, assumed: bool, seeds: int | None
) -> dict[str, Any]:
    from ..benchmarks.comparison import run_measures
    from ..benchmarks.comparison.compare import compare_in_full

    if statistic == "difference":
        return compare_in_full(*paths)
    if statistic == "robustness":
        return run_measures.measure_effective_robustness(paths[0], paths[1:])
    if statistic == "recovered":
        return run_measures.measure_gap_recovered(paths[0], paths[1], paths[2], view)
    if statistic == "replicates":
        return run_measures.replicates(*paths)
    if statistic == "variance":
        return run_measures.variation(paths[0])
    return run_measures.compute_detectable_difference(on, [] if assumed else paths or _read_recorded_runs(on), seeds)


def _read_recorded_runs(benchmark: str) -> list[Any]:
    from ..baselines.running.results import find_recorded_run, list_results

    names = [name for on, name in list_results() if on == benchmark]
    return [find_recorded_run(benchmark, name) for name in names] if len(names) > 1 else []


def _print_difference(record: dict[str, Any], full: bool) -> None:
    rows = [[name, *_format_difference(item)] for name, item in record["difference"].items()]
    if full:
        rows += [[_format_severity(point), *_format_difference(point)] for point in record["severity"]]
        rows += [[f"group {name}", *_format_difference(item)] for name, item in record["groups"].items()]
    heading = f"{record['left']} minus {record['right']} on {record['benchmark']}"
    tests = [_format_test(view, test) for view, test in record["test"].items() if full and (test["test"] or test["t"])]
    below = "\n".join([record["interval"], *tests])
    print_table(heading, ["score", "difference", "95 % interval", "distinguishable"], rows, below)


def _format_test(view: str, test: dict[str, Any]) -> str:
    if not test["test"]:
        return f"{view}: t test with the variance of the interval: p = {test['t']['p']:.3g}"
    return f"{view}: {test['test']}: p = {test['p']:.3g} ({test['tests']})"


def _format_severity(point: dict[str, Any]) -> str:
    low, high = point["from"], point["to"]
    return f"{point['view']} at severity {low:g}" + (f" to {high:g}" if high > low else "")


def _format_difference(record: dict[str, Any]) -> list[str]:
    from ..benchmarks.statistics.interval import NotAvailable, read_interval

    known = read_interval(record)
    if isinstance(known, NotAvailable):
        return ["n/a", known.reason, ""]
    answers = {True: "yes", False: "no", None: "needs more seeds"}
    interval = f"[{known.low:+.4f}, {known.high:+.4f}]"
    return [f"{known.value:+.4f}", interval, answers[record["distinguishable"]]]


def _print_robustness(record: dict[str, Any]) -> None:
    from ..benchmarks.scoring.record import format_estimate
    from ..benchmarks.statistics.interval import read_interval

    print_line(
        f"{record['model']} on {record['benchmark']}: {format_estimate(read_interval(record['robustness']))} above the "
        f"line of {record['line']}"
    )
    print_line(record["interval"])


def _print_recovered(record: dict[str, Any]) -> None:
    from ..benchmarks.scoring.record import format_estimate
    from ..benchmarks.statistics.interval import read_interval

    share = f"{format_estimate(read_interval(record['recovered']))} of the gap"
    print_line(f"{record['model']} recovers {share} from {record['floor']} to {record['ceiling']}")
    print_line(record["interval"])


def _print_replicates(record: dict[str, Any]) -> None:
    rows = [
        [view.upper(), f"{item['mean']:.3f}", "" if item["sd"] is None else f"{item['sd']:.3f}"]
        for view, item in record["views"].items()
    ]
    heading = f"{record['model']} on {', '.join(record['benchmarks'])} ({drop_version(record['metric'])})"
    below = f"over {record['replicates']}; sd: sample standard deviation (n - 1)"
    print_table(heading, ["score", "mean", "sd"], rows, below)


def _print_variance(record: dict[str, Any]) -> None:
    views = [record["views"][view] for view in ("id", "ood")]
    rows = [
        [name.replace("_", " "), *(f"{part['share']:.1%}" if part else "" for part in parts)]
        for name in views[0]["components"]
        if any(parts := [view["components"][name] for view in views])
    ]
    rows += [["total variance", *(f"{view['total']:.4f}" for view in views)]]
    heading = f"{record['model']} on {record['benchmark']} ({drop_version(record['metric'])})"
    print_table(heading, ["source", "ID", "OOD"], rows, record["meaning"])


def _print_detectable(record: dict[str, Any]) -> None:
    rows = [[view, *_format_detectable(record[view])] for view in ("id", "ood")]
    heading = f"{record['benchmark']} ({drop_version(record['metric'])})"
    print_table(heading, ["score", "detectable", "rows", "clusters"], rows, record["how"])


def _format_detectable(record: dict[str, Any]) -> list[Any]:
    from ..benchmarks.statistics.interval import NotAvailable, read_available

    known = read_available(lambda item: float(item["value"]), record)
    value = known.reason if isinstance(known, NotAvailable) else f"{known:.4f}"
    if record.get("pairs"):
        value += f" [{record['low']:.4f}, {record['high']:.4f}]"
    clusters = "" if record["clusters"] is None else f"{record['clusters']} ({record['clusters_are']})"
    return [value, record["rows"], clusters]


@command(app)
def plot(
    runs: Runs,
    what: str = "gap",
    out: Path | None = None,
    title: str = "",
    no_note: bool = False,
    table: str = "",
    caption: str = "",
    label: str = "",
    json: bool = False,
) -> None:
    """Plot runs as a figure, or write their scores as a table.

    --what FIGURE: Figure: gap (ID and OOD scores), severity (score by severity of the shift), id_ood (OOD
        against ID scores), noise (memorised and corrected labels), calibration (reliability diagrams), or the
        name of a plug-in.
    --out FILE: Image to write: .png, .svg or .pdf; with --table, text file to write (default: print the table).
    --table FORMAT: Write a table instead of a figure: latex, markdown, csv, or the name of a plug-in format.
    """
    from ..benchmarks.comparison.compare import find_leaders
    from ..benchmarks.plot import draw_plot, get_plot_note
    from ..benchmarks.scoring.score import score as go
    from ..benchmarks.tables import render_table

    if bool(table) == (out is not None and not table):
        raise FarshiftError("plot: name an image file to write (--out FIGURE.png) or a table format (--table markdown)")
    if table and out is not None and out.suffix in (".png", ".svg", ".pdf"):
        raise FarshiftError(f"plot: {out} is an image file, and --table {table} writes text: leave out one of the two")
    misplaced = (
        {"title": title, "no-note": no_note, "what": what != "gap"} if table else {"caption": caption, "label": label}
    )
    if wrong := [name for name, value in misplaced.items() if value]:
        what = "figures: leave out --table" if table else "tables: add --table latex"
        raise FarshiftError(f"plot: --{wrong[0]} applies to {what}, or leave it out")
    with show_progress():
        scores = [go(path) for path in runs]
        leads = find_leaders(runs) if table == "latex" else None
    if table:
        text = render_table(scores, table, caption=caption, label=label, leaders=leads)
        if out is not None:
            from ..core.files import write_atomically

            write_atomically(out, text.encode())
        record = {"table": text, "file": None if out is None else str(out)}
        return emit_json(record) if json else print_block(text.rstrip())
    assert out is not None
    file = draw_plot(scores, what, out, title=title, note=not no_note)
    note = {"note": get_plot_note(scores, what)} if no_note else {}
    if json:
        return emit_json({"file": str(file), "what": what, "runs": len(runs)} | note)
    print_block("\n".join([str(file), *note.values()]))
