"""`farshift baselines ..`: one short function a command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..core.text import format_count
from .options import Runs, command, refuse_latex_options
from .output import (
    NARROW,
    Columns,
    count_terminal_columns,
    emit_json,
    format_estimate,
    print_block,
    print_catalogue,
    print_records,
    print_result,
    print_table,
)
from .progress import show_progress

if TYPE_CHECKING:
    from ..baselines.running.listing import BaselineEntry
    from ..baselines.running.recorded_scores import RecordedScore

app = typer.Typer(
    help="List baselines, algorithms, networks and recorded results.",
    no_args_is_help=True,
)


@command(app, "list")
def baselines_list(
    search: list[str] | None = None,
    kind: str | None = None,
    budgets: bool = False,
    published: bool = False,
    json: bool = False,
) -> None:
    """List the baselines, or those that match the search words and options.

    --kind KIND: Kind of shift that the baseline targets: domain, length, compositional, easy-to-hard,
        corrupted-label, or any (not specific to one).
    --budgets: Show the number of training steps under each budget and in the original papers.
    --published: List published training settings and search ranges instead.
    """
    from ..baselines.running.listing import baselines
    from ..core.errors import FarshiftError

    if published:
        if search or kind or budgets:
            raise FarshiftError("baselines list: --published takes no search words, --kind or --budgets")
        return _print_published_settings(json)
    matches = baselines(" ".join(search or ()), kind=kind)
    if budgets:
        return _print_budgets([entry for entry in matches if entry.full is not None], json)
    if json:
        return emit_json(matches.to_dicts())
    rows = [[r.name, r.kind, r.network or r.estimator or "", r.algorithm or "", r.title] for r in matches]
    print_catalogue(["baseline", "kind", "network", "algorithm", "title"], rows, format_count(len(matches), "baseline"))


def _print_budgets(entries: Sequence[BaselineEntry], json: bool) -> None:
    records = [{key: getattr(entry, key) for key in ("name", "quick", "full", "reference")} for entry in entries]
    columns: Columns = {
        "baseline": "name",
        "quick": lambda entry: str(entry["quick"]),
        "full": lambda entry: str(entry["full"]),
        "paper or its code": lambda entry: entry["reference"] or "not recorded",
    }
    print_records(json, records, columns, format_count(len(entries), "baseline"), print_catalogue)


@command(app, "algorithms")
def baselines_algorithms(json: bool = False) -> None:
    """List the training algorithms: kind of shift, data used, citation."""
    from ..baselines.running.listing import list_algorithms

    records = list_algorithms()
    columns = {"algorithm": "name", "kind": "kind", "data used": "touches", "citation": "citation"}
    print_records(
        json, records, columns | {"description": "title"}, format_count(len(records), "algorithm"), print_catalogue
    )


@command(app, "networks")
def baselines_networks(json: bool = False) -> None:
    """List the networks: task and description."""
    from ..baselines.running.listing import list_networks

    columns = {"network": "name", "task": "task", "description": "title"}
    print_records(json, list_networks(), columns, show=print_catalogue)


def _print_published_settings(json: bool) -> None:
    from ..baselines.running.published import list_published

    settings = list_published()

    def list_benchmarks(setting: dict[str, Any]) -> str:
        algorithms = f" ({', '.join(setting['algorithms'])})" if setting["algorithms"] else ""
        return ", ".join(setting["benchmarks"]) + algorithms

    columns: Columns = {
        "published": "published",
        "benchmarks": list_benchmarks,
        "setting": "setting",
        "value": lambda setting: "" if setting["value"] is None else str(setting["value"]),
        "search": lambda setting: " ".join(map(str, setting["search"] or ())),
        "location": "where",
    }
    sources = {setting["published"]: setting["source"] for setting in settings}
    print_records(json, settings, columns, ". ".join(f"{name}: {source}" for name, source in sources.items()))


@command(app, "record")
def baselines_record(runs: Runs, to: Path | None = None, json: bool = False) -> None:
    """Record finished baseline runs as results: their predictions, in a compact form, and their scores.

    --to DIR: Output folder (default: the results folder of the package).
    """
    from ..baselines.running.recorded_scores import rescore_recorded, write_recorded_score
    from ..baselines.running.results import get_results_home, record_run
    from ..benchmarks.runs.run import read_run

    files = []
    with show_progress():
        for path in runs:
            run = read_run(path)
            home = to or get_results_home(run.budget)
            files.append(record_run(run, home))
            write_recorded_score(rescore_recorded(run.benchmark, run.model, home), home)
    records = [{"run": str(path), "file": str(file)} for path, file in zip(runs, files, strict=True)]
    print_result(json, records, *(f"{file}: {file.stat().st_size:,} bytes" for file in files))


_UNDERTRAINED_NOTE = (
    " undertrained: the ID score of a seed is no better than a constant prediction, or, where there is"
    " a gap, less than half way to the best recorded ID score; its OOD score does not measure the shift."
)


_UNIT = "in percent, or in the metric's unit if it is not within [0, 1]"


def _format_views(score: RecordedScore) -> list[str]:
    return [format_estimate(estimate.to_dict(), score.in_percent) for estimate in (score.id, score.ood, score.gap)]


_LONG = 34
"""The longest benchmark name that leaves room for the other columns on a narrow screen."""


def _wrap_name(name: str) -> str:
    """A benchmark's name; a long one in two lines where the screen is narrow, so that its score is not squeezed out."""
    return name.replace("/", "/\n  ", 1) if len(name) > _LONG and count_terminal_columns() < NARROW else name


def _format_ood(score: RecordedScore, marked: str) -> str:
    """The OOD score without its interval, with a star where the result is marked."""
    return format_estimate(score.ood.to_dict(), score.in_percent).partition(" ")[0] + ("*" if marked else "")


@command(app, "results")
def baselines_results(
    on: str = "",
    rescore: bool = False,
    all_: bool = False,
    budget: str = "quick",
    latex: bool = False,
    caption: str = "",
    label: str = "",
    json: bool = False,
) -> None:
    """List the best recorded result on each benchmark, or every result on one, best OOD score first.

    Results recorded with another version of the scorer are rescored from their predictions, which requires the
    benchmark's data.

    --on BENCHMARK: Only results on this benchmark.
    --rescore: Rescore the predictions; exit code 1 if a score differs.
    --all: List every result, not only the best on each benchmark.
    --budget quick|full: Training budget of the results: quick or full.
    """
    from ..baselines.running.recorded_scores import (
        RecordedScore,
        read_recorded_scores,
        rescore_recorded,
        sort_best_first,
    )
    from ..baselines.running.results import get_results_home, list_results
    from ..baselines.running.undertrained import find_undertrained
    from ..benchmarks.scoring.trained_check import MARK
    from ..core.errors import UnknownName
    from ..core.progress import log_message, report_progress

    refuse_latex_options(latex, json, caption, label)
    home = get_results_home(budget)
    known = list_results(home)
    if on and on not in {benchmark for benchmark, _ in known}:
        raise UnknownName("benchmark with recorded results", on, {benchmark for benchmark, _ in known})
    selected = [pair for pair in known if on in ("", pair[0])]
    stored_scores = {
        benchmark: read_recorded_scores(benchmark, home)
        for benchmark in sorted({benchmark for benchmark, _ in selected})
    }
    lacking = [(benchmark, name) for benchmark, name in selected if rescore or name not in stored_scores[benchmark]]
    scores = [stored_scores[benchmark][name] for benchmark, name in selected if (benchmark, name) not in set(lacking)]
    differ = []
    with show_progress():
        for index, (benchmark, name) in enumerate(lacking):
            report_progress("scoring", index, len(lacking))
            scores.append(now := RecordedScore.of(rescore_recorded(benchmark, name, home)))
            before = stored_scores[benchmark].get(name, now)
            if before.to_dict() != now.to_dict():
                differ.append(f"{name} on {benchmark}: OOD {now.ood.value:.6f}, recorded as {before.ood.value:.6f}")
        report_progress("scoring", len(lacking), len(lacking))
    scores = sort_best_first(scores)
    marked = {
        name: find_undertrained(name, read_recorded_scores(name) | read_recorded_scores(name, home))
        for name in {r.benchmark for r in scores}
    }

    def mark(score: RecordedScore) -> str:
        return MARK if score.model in marked[score.benchmark] else ""

    if json:
        emit_json([r.to_dict() | {"not_learnt": marked[r.benchmark].get(r.model, "")} for r in scores])
    elif latex:
        from ..baselines.running.results_table import format_latex as written

        print_block(written(scores, caption, label).rstrip())
    elif not (on or all_):
        first = {r.benchmark: r for r in reversed(scores)}
        counts = Counter(r.benchmark for r in scores)
        rows = [
            [_wrap_name(name), first[name].model, _format_ood(first[name], mark(first[name])), counts[name]]
            for name in sorted(first)
        ]
        summary = (
            f"{format_count(len(scores), 'result')}, OOD {_UNIT} (*: undertrained); "
            "--on BENCHMARK lists its results, --all all."
        )
        print_table("", ["benchmark", "best baseline", "OOD", "runs"], rows, summary)
    else:
        rows = [
            [
                r.benchmark,
                r.model,
                *(format_estimate(estimate.to_dict(), r.in_percent) for estimate in (r.id, r.ood, r.gap)),
                len(r.seeds),
                mark(r),
            ]
            for r in scores
        ]
        columns = ["benchmark", "baseline", "ID", "OOD", "gap = ID - OOD", "seeds", "remark"]
        summary = f"Brackets are 95 % t intervals over test rows and training seeds. Scores {_UNIT}."
        print_table("", columns, rows, f"{summary}{_UNDERTRAINED_NOTE if any(map(mark, scores)) else ''}")
    if differ:
        log_message("\n".join(differ))
        raise typer.Exit(1)
