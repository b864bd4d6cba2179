"""`farshift baselines ..`: one short function a command."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from ..core.listings.plural import counted
from . import paging
from .finding import Words
from .runs import Caption, Label, Latex, Runs, refuse_latex_options
from .terminal import Json, block, catalogue, emit_json, line, table, view, watched

if TYPE_CHECKING:
    from ..baselines.running.listing import BaselineEntry
    from ..baselines.running.recorded_scores import RecordedScore

app = typer.Typer(
    help="Baselines: list, algorithms, networks, results, record.",
    no_args_is_help=True,
)


@app.command("list")
def baselines_list(
    search: Words = None,
    kind: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--kind", metavar="K", help="The kind of shift that it is against, or any."),
    ] = None,
    budgets: Annotated[
        bool, typer.Option("--budgets", help="Their training steps under each budget, and in their papers.")
    ] = False,
    published: Annotated[
        bool, typer.Option("--published", help="Published training settings and search ranges instead.")
    ] = False,
    json: Json = False,
) -> None:
    """List the baselines, or those that fit."""
    from ..baselines.running.listing import baselines
    from ..core.errors import FarshiftError

    if published:
        if search or kind or budgets:
            raise FarshiftError("baselines list: --published lists settings, and goes without words to search for")
        return _print_published_settings(json)
    found = baselines(" ".join(search or ()), kind=kind)
    if budgets:
        return _print_budgets([entry for entry in found if entry.full is not None], json)
    if json:
        return emit_json(found.to_dicts())
    rows = [[r.name, r.kind, r.network or r.estimator or "", r.algorithm or "", r.title] for r in found]
    catalogue(["baseline", "kind", "network", "algorithm", "title"], rows, counted(len(found), "baseline"))


def _print_budgets(entries: Sequence[BaselineEntry], json: bool) -> None:
    if json:
        keys = ("name", "quick", "full", "reference")
        return emit_json([{key: getattr(entry, key) for key in keys} for entry in entries])
    rows = [[entry.name, str(entry.quick), str(entry.full), entry.reference or "not looked up"] for entry in entries]
    catalogue(["baseline", "quick", "full", "the paper's or its code's"], rows, counted(len(entries), "baseline"))


@app.command("algorithms")
def baselines_algorithms(json: Json = False) -> None:
    """List every training algorithm: its kind of shift, its citation, the data it uses."""
    from ..baselines.running.listing import algorithms

    found = algorithms()
    if json:
        return emit_json(found)
    rows = [[a["name"], a["kind"], ", ".join(a["touches"]), a["citation"], a["title"]] for a in found]
    catalogue(["algorithm", "kind", "looks at", "citation", "what it does"], rows, f"{len(found):,} algorithms")


@app.command("networks")
def baselines_networks(json: Json = False) -> None:
    """List every network."""
    from ..baselines.running.listing import networks

    found = networks()
    if json:
        return emit_json(found)
    catalogue(["network", "task", "what it is"], [[n["name"], n["task"], n["title"]] for n in found])


def _print_published_settings(json: bool) -> None:
    from ..baselines.running.published import listing

    found = listing()
    if json:
        return emit_json(found)
    columns = ["published", "benchmarks", "setting", "value", "search", "stands at"]
    rows = [
        [
            one["published"],
            ", ".join(one["benchmarks"]) + (f" ({', '.join(one['algorithms'])})" if one["algorithms"] else ""),
            one["setting"],
            "" if one["value"] is None else str(one["value"]),
            "" if one["search"] is None else " ".join(map(str, one["search"])),
            one["where"],
        ]
        for one in found
    ]
    sources = {one["published"]: one["source"] for one in found}
    table("", columns, rows, ". ".join(f"{name}: {source}" for name, source in sources.items()))


@app.command("record")
def baselines_record(
    runs: Runs,
    to: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--to", metavar="DIR", help="Where the results go; default: the package's own."),
    ] = None,
    json: Json = False,
) -> None:
    """Store the predictions of finished baseline runs as recorded results, in a compact form, and their scores."""
    from ..baselines.running.recorded_scores import keep, rescored
    from ..baselines.running.results import home_of, record
    from ..benchmarks.runs.run import read_run

    files = []
    with watched():
        for path in runs:
            run = read_run(path)
            home = to or home_of(run.budget)
            files.append(record(run, home))
            keep(rescored(run.benchmark, run.model, home), home)
    if json:
        return emit_json([{"run": str(path), "file": str(file)} for path, file in zip(runs, files, strict=True)])
    for file in files:
        line(f"{file}: {file.stat().st_size:,} bytes")


_EXPLAINED = (
    " ID not learnt: a seed is no better than a constant answer, or not half way to the best recorded ID score where"
    " there is a gap: nothing is said of the shift."
)


_UNIT = "in percent, or as they are where a metric does not lie between 0 and 1"


def _views(one: RecordedScore) -> list[str]:
    return [view(estimate.to_dict(), one.in_percent) for estimate in (one.id, one.ood, one.gap)]


_LONG = 34
"""Columns of a benchmark's name that leave room for the others on a narrow screen."""


def _folded(name: str) -> str:
    """A benchmark's name; a long one in two lines where the screen is narrow, so that its score is not squeezed out."""
    return name.replace("/", "/\n  ", 1) if len(name) > _LONG and paging.columns() < paging.NARROW else name


def _short(one: RecordedScore, marked: str) -> str:
    """The OOD score without its interval, with a star where the result is marked."""
    return view(one.ood.to_dict(), one.in_percent).partition(" ")[0] + ("*" if marked else "")


@app.command("results")
def baselines_results(
    on: Annotated[str, typer.Option("--on", metavar="BENCHMARK", help="Only this benchmark.")] = "",
    rescore: Annotated[
        bool, typer.Option("--rescore", help="Score the predictions again. Exit code 1 where that gives another score.")
    ] = False,
    each: Annotated[bool, typer.Option("--all", help="Every result, not only the best on each benchmark.")] = False,
    budget: Annotated[
        str, typer.Option("--budget", metavar="quick|full", help="The budget under which they were trained.")
    ] = "quick",
    latex: Latex = False,
    caption: Caption = "",
    label: Label = "",
    json: Json = False,
) -> None:
    """List the best recorded result on each benchmark, or all of one benchmark, best OOD score first.

    Results whose kept score is of another version are scored from their predictions, which needs their data."""
    from ..baselines.running.learnt import not_learnt
    from ..baselines.running.recorded_scores import RecordedScore, best_first, kept_scores, rescored
    from ..baselines.running.results import home_of, results
    from ..benchmarks.scoring.learnt import MARK
    from ..core.errors import UnknownName
    from ..core.progress import advance, say

    refuse_latex_options(latex, json, caption, label)
    home = home_of(budget)
    known = results(home)
    if on and on not in {benchmark for benchmark, _ in known}:
        raise UnknownName("benchmark with recorded results", on, {benchmark for benchmark, _ in known})
    asked = [pair for pair in known if on in ("", pair[0])]
    kept = {benchmark: kept_scores(benchmark, home) for benchmark in sorted({benchmark for benchmark, _ in asked})}
    lacking = [(benchmark, name) for benchmark, name in asked if rescore or name not in kept[benchmark]]
    found = [kept[benchmark][name] for benchmark, name in asked if (benchmark, name) not in set(lacking)]
    differ = []
    with watched():
        for place, (benchmark, name) in enumerate(lacking):
            advance("scoring", place, len(lacking))
            found.append(now := RecordedScore.of(rescored(benchmark, name, home)))
            before = kept[benchmark].get(name, now)
            if before.to_dict() != now.to_dict():
                differ.append(f"{name} on {benchmark}: OOD {now.ood.value:.6f}, kept as {before.ood.value:.6f}")
        advance("scoring", len(lacking), len(lacking))
    found = best_first(found)
    marked = {
        name: not_learnt(name, kept_scores(name) | kept_scores(name, home)) for name in {r.benchmark for r in found}
    }

    def mark(one: RecordedScore) -> str:
        return MARK if one.model in marked[one.benchmark] else ""

    if json:
        emit_json([r.to_dict() | {"not_learnt": marked[r.benchmark].get(r.model, "")} for r in found])
    elif latex:
        from ..baselines.running.results_table import latex as written

        block(written(found, caption, label).rstrip())
    elif not (on or each):
        first = {r.benchmark: r for r in reversed(found)}
        counts = Counter(r.benchmark for r in found)
        rows = [
            [_folded(name), first[name].model, _short(first[name], mark(first[name])), counts[name]]
            for name in sorted(first)
        ]
        told = (
            f"{counted(len(found), 'result')}, OOD {_UNIT} (*: ID not learnt); --on BENCHMARK lists its own, "
            "--all every one."
        )
        table("", ["benchmark", "best baseline", "OOD", "of"], rows, told)
    else:
        rows = [
            [
                r.benchmark,
                r.model,
                *(view(one.to_dict(), r.in_percent) for one in (r.id, r.ood, r.gap)),
                len(r.seeds),
                mark(r),
            ]
            for r in found
        ]
        columns = ["benchmark", "baseline", "ID", "OOD", "gap = ID - OOD", "seeds", "remark"]
        told = f"Brackets are 95 % t intervals over test rows and training seeds. Scores {_UNIT}."
        table("", columns, rows, f"{told}{_EXPLAINED if any(map(mark, found)) else ''}")
    if differ:
        say("\n".join(differ))
        raise typer.Exit(1)
