"""`farshift baselines ..`: one short function a command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..core.text import drop_version, format_count
from .options import Runs, command
from .output import (
    Columns,
    emit_json,
    format_estimate,
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
    find = partial(baselines, kind=kind)
    matches = find(" ".join(search or ()))
    if budgets:
        return _print_budgets([entry for entry in matches if entry.full is not None], json)
    if json:
        return emit_json(matches.to_dicts())
    rows = [[r.name, r.kind, r.network or r.estimator or "", r.algorithm or "", r.title] for r in matches]
    columns = ["baseline", "kind", "network", "algorithm", "title"]
    print_catalogue(columns, rows, format_count(len(matches), "baseline"), search or (), find)


def _print_budgets(entries: Sequence[BaselineEntry], json: bool) -> None:
    records = [{key: getattr(entry, key) for key in ("name", "quick", "full", "reference")} for entry in entries]
    columns: Columns = {
        "baseline": "name",
        "quick": lambda entry: str(entry["quick"]),
        "full": lambda entry: str(entry["full"]),
        "paper or its code": lambda entry: entry["reference"] or "not recorded",
    }
    print_records(json, records, columns, format_count(len(entries), "baseline"))


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
    """List the networks, and the pretrained networks (for --encoder and --fine-tune) with licence and size."""
    from ..baselines.running.listing import list_networks
    from ..loaders.cache.entries import format_size

    def describe(record: dict[str, Any]) -> str:
        if "licence" not in record:
            return str(record["title"])
        return f"{record['title']} ({record['licence']}, {format_size(record['bytes'])})"

    columns: Columns = {"network": "name", "task": "task", "description": describe}
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


_MARKS_NOTE = (
    " low ID score: that of a seed is no better than a constant prediction, or, where there is"
    " a gap, less than half way to the best recorded ID score; smoke run: the best is less than half way to a perfect"
    " one. Their OOD scores do not measure the shift."
)


_UNIT = "in percent, or in the metric's unit if it is not within [0, 1]"


@command(app, "results")
def baselines_results(
    on: str = "",
    rescore: bool = False,
    all_: bool = False,
    budget: str = "quick",
    json: bool = False,
) -> None:
    """List the best recorded result on each benchmark, or every result on one, best OOD score first.

    farshift plot baseline:NAME@BENCHMARK .. --table latex makes a table for a paper. Results recorded with another
    version of the scorer are rescored from their predictions, which requires the benchmark's data.

    --on BENCHMARK: Only results on this benchmark.
    --rescore: Rescore the predictions; exit code 1 if a score differs.
    --all: List every result, not only the best on each benchmark.
    --budget quick|full: Training budget of the results: quick or full.
    """
    from ..baselines.running.recorded_scores import (
        SMOKE,
        RecordedScore,
        find_low_id_scores,
        read_recorded_scores,
        rescore_recorded,
        sort_best_first,
    )
    from ..baselines.running.results import check_recorded, get_results_home, list_results
    from ..core.progress import log_message, report_progress

    home = get_results_home(budget)
    known = list_results(home)
    benchmarks = {benchmark for benchmark, _ in known}
    if on:
        check_recorded(on, benchmarks)
    stored = {name: read_recorded_scores(name, home) for name in benchmarks if on in ("", name)}
    selected = [(benchmark, name) for benchmark, name in known if benchmark in stored]
    lacking = [(benchmark, name) for benchmark, name in selected if rescore or name not in stored[benchmark]]
    scores = [stored[benchmark][name] for benchmark, name in selected if (benchmark, name) not in lacking]
    differ = []
    with show_progress():
        for index, (benchmark, name) in enumerate(lacking):
            report_progress("scoring", index, len(lacking))
            scores.append(now := RecordedScore.of(rescore_recorded(benchmark, name, home)))
            before = stored[benchmark].get(name, now)
            if before.to_dict() != now.to_dict():
                differ.append(f"{name} on {benchmark}: OOD {now.ood.value:.6f}, recorded as {before.ood.value:.6f}")
        report_progress("scoring", len(lacking), len(lacking))
    scores = sort_best_first(scores)
    low_id = {name: find_low_id_scores(name, read_recorded_scores(name) | stored[name]) for name in stored}
    marks = [low_id[score.benchmark].get(score.model, "") for score in scores]
    if json:
        emit_json([score.to_dict() | {"not_learnt": mark} for score, mark in zip(scores, marks, strict=True)])
    elif on or all_:
        _print_all_results(scores, marks)
    else:
        trained = [(score, mark) for score, mark in zip(scores, marks, strict=True) if not mark.startswith(SMOKE)]
        _print_best_results(trained, len(scores) - len(trained))
    if differ:
        log_message("\n".join(differ))
        raise typer.Exit(1)


def _print_best_results(marked_scores: Sequence[tuple[RecordedScore, str]], omitted: int) -> None:
    """The first score of each benchmark, without its interval, and a star where it is marked."""
    counts = Counter(score.benchmark for score, _ in marked_scores)
    best: dict[str, list[Any]] = {}
    for score, mark in marked_scores:
        ood = format_estimate(score.ood.to_dict(), score.in_percent).partition(" ")[0] + "*" * bool(mark)
        best.setdefault(score.benchmark, [score.benchmark, score.model, ood, counts[score.benchmark]])
    count = format_count(len(marked_scores), "result") + (f" ({omitted} smoke runs left out)" if omitted else "")
    caption = f"{count}, OOD {_UNIT} (*: low ID score); --on BENCHMARK lists its results, --all all."
    print_table("", ["benchmark", "best baseline", "OOD", "runs"], [best[name] for name in sorted(best)], caption)


def _print_all_results(scores: Sequence[RecordedScore], marks: Sequence[str]) -> None:
    from ..baselines.running.recorded_scores import SMOKE
    from ..benchmarks.scoring.trained_check import MARK

    rows = []
    for score, mark in zip(scores, marks, strict=True):
        remark = SMOKE if mark.startswith(SMOKE) else MARK if mark else ""
        remark += f"{', ' * bool(remark)}{score.steps} steps" if score.steps else ""
        views = [format_estimate(view.to_dict(), score.in_percent) for view in (score.id, score.ood, score.gap)]
        rows.append([score.benchmark, score.model, *views, drop_version(score.metric), len(score.seeds), remark])
    columns = ["benchmark", "baseline", "ID", "OOD", "gap = ID - OOD", "metric", "seeds", "remark"]
    caption = f"Brackets are 95 % t intervals over test rows and training seeds. Scores {_UNIT}."
    print_table("", columns, rows, caption + (_MARKS_NOTE if any(marks) else ""))
