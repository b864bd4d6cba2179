"""The index of benchmarks by kind of shift with the aggregates over them, and a page for each benchmark with entries:
its shift, its tables, and figures of its main table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...core.errors import FarshiftError
from ...splits.manifest import KINDS
from ...splits.rule_docs import find_rule_title
from ..tables.snapshot import Snapshot
from ..tables.table import Table
from .entries import is_naive
from .examples import find_examples, format_credit
from .figures import describe_axis, make_audit_figure, make_table_figures
from .page import Page, format_interval, format_score

WHAT = {
    "domain": "Test data come from other domains: places, years, speakers or styles.",
    "length": "Test inputs or answers are longer than any in training.",
    "compositional": "Test rows combine known parts in combinations that do not occur in training.",
    "easy-to-hard": "Models train on easy problems and are tested on hard ones.",
    "corrupted-label": "Some training labels are wrong; the test labels are correct.",
}
"""Each kind of shift in a sentence."""


def list_pages(board: Snapshot) -> Iterator[Page]:
    """Yield the index and the pages of all benchmarks with a table."""
    views: dict[str, list[Table]] = {}
    for view in board.views:
        views.setdefault(view.benchmark, []).append(view)
    yield Page("benchmarks/index.html", "benchmarks.html", partial(_make_index_context, views))
    for name in sorted(views):
        yield Page(f"benchmarks/{name}.html", "benchmark.html", partial(_make_context, board, name, views[name]))


def _make_index_context(tables: Mapping[str, Sequence[Table]]) -> dict[str, Any]:
    known = load_benchmarks()
    rows: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for _, views in sorted(tables.items()):
        rows[views[0].kind].append(_make_index_row(views))
    kinds = [{"kind": kind, "what": WHAT[kind], "rows": rows[kind]} for kind in KINDS]
    return {"kinds": kinds, "without": sorted(set(known) - set(tables))}


def _make_index_row(views: Sequence[Table]) -> dict[str, Any]:
    """Return a benchmark's row in the index, from its first current table."""
    view = next((table_view for table_view in views if table_view.current), views[0])
    learnt = [row for row in view.rows if not is_naive(row)]
    first = [row.standing.score.model for row in learnt if row.rank is not None and row.rank[0] == 1]
    best = (learnt or view.rows)[0].standing.score
    named = ", ".join(first[:2]) + (f" and {len(first) - 2} more" if len(first) > 2 else "")
    return {
        "name": view.benchmark,
        "path": f"benchmarks/{view.benchmark}.html",
        "title": view.title,
        "entries": sum(len(table_view.rows) for table_view in views),
        "leaders": f"{named} ({len(first)} of {view.ranked})" if first else "none ranked",
        "best": f"{format_score(best.ood.value, best.bounds)} {format_interval(best.ood, best.bounds)}",
    }


def _make_context(board: Snapshot, name: str, views: Sequence[Table]) -> dict[str, Any]:
    now = [view for view in views if view.current]
    main = (now or views)[0]
    return {
        "name": name,
        "kind": main.kind,
        "title": main.title,
        "what": WHAT[main.kind],
        "now": now,
        "old": [view for view in views if not view.current],
        "gone": [entry for entry in board.apart if entry.score.benchmark == name],
        "figures": make_table_figures(main),
        "figured": main.heading if len(views) > 1 else "",
        **_describe_benchmark(load_benchmarks().get(name)),
    }


def _describe_benchmark(benchmark: Benchmark | None) -> dict[str, Any]:
    """Return the contents of a benchmark's definition and its split's manifest; empty for an unknown benchmark."""
    if benchmark is None:
        names = ("facts", "notes", "audit", "summary", "references", "papers", "examples", "credit")
        return dict.fromkeys(names, "") | {"no_examples": "This version of Farshift does not know the benchmark."}
    manifest = benchmark.manifest
    definition = manifest.definition
    examples, why = find_examples(benchmark)
    return {
        "notes": " ".join(note for note in (benchmark.definition.notes, definition.notes) if note),
        "facts": _list_facts(benchmark),
        "audit": make_audit_figure(manifest.audit()),
        "summary": manifest.audit_summary(),
        "references": benchmark.definition.references,
        "papers": definition.references,
        "examples": examples,
        "credit": format_credit(benchmark) if examples else "",
        "no_examples": why,
    }


def _describe_rule(name: str, parameters: Mapping[str, Any]) -> str:
    """Return what a rule does, in a sentence with the values of the parameters that it names, and those of others
    after it; lists and tables are on the split's page."""
    try:
        title = find_rule_title(name)
    except FarshiftError:
        return f"{name}: a rule that this version of Farshift does not know"
    short = {key: value for key, value in sorted(parameters.items()) if isinstance(value, str | int | float)}
    named = set(re.findall(r"`(\w+)`", title))
    sentence = re.sub(
        r"`(\w+)`", lambda match: f"{match[1]} ({short[match[1]]})" if match[1] in short else match[1], title
    )
    others = ", ".join(f"{key} = {value}" for key, value in short.items() if key not in named | {"seed"})
    return f"{name}: {sentence} ({others})" if others else f"{name}: {sentence}"


def _list_facts(benchmark: Benchmark) -> list[tuple[str, str]]:
    definition, task = benchmark.manifest.definition, benchmark.definition.task
    protocol = benchmark.definition.protocol
    facts = [
        ("Split", benchmark.manifest.full_name),
        ("Identity of the split", benchmark.manifest.identity),
        ("Task", f"{task.type}: {', '.join(task.inputs)} to {task.label}"),
        ("Rule", _describe_rule(definition.rule, definition.parameters)),
        ("Rows", ", ".join(f"{part} {pin.rows:,}" for part, pin in definition.parts.items())),
        ("Metric", f"{benchmark.metrics[0].name} (version {benchmark.metrics[0].version})"),
        ("Seeds", f"{protocol.seeds} (quick budget: {protocol.quick_seeds})"),
        ("Selection", ", ".join(protocol.selection)),
        ("Severity", describe_axis(definition.severity)),
        ("Groups", describe_axis(definition.group)),
        ("Licence of the data", definition.licence),
    ]
    return [(term, text) for term, text in facts if text]
