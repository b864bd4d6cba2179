"""A page for each benchmark with entries: its shift, its tables, and figures of its main table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ....benchmarks.benchmark import Benchmark, load_benchmarks
from ....core.errors import FarshiftError
from ....splits.rule_docs import find_rule
from ...tables.suite_table import format_model_name
from ...tables.table_view import TableView
from ..example_permissions import format_credit
from ..examples import find_examples
from ..figures.audit import make_audit_figures
from ..figures.history import make_history_figure
from ..figures.scatter import make_scatter_figure
from ..figures.severity import make_severity_figure
from ..figures.svg import Figure
from ..leaders import WHAT
from ..page import Page
from ..page_graphics import describe_severity_axis

if TYPE_CHECKING:
    from ..site import Site


def make_benchmark_path(benchmark: str) -> str:
    """Return the path of a benchmark's page."""
    return f"benchmarks/{benchmark}.html"


def pages(site: Site) -> Iterator[Page]:
    """Yield the pages of all benchmarks with a table."""
    views_by_benchmark: dict[str, list[TableView]] = {}
    for view in site.snapshot.views:
        views_by_benchmark.setdefault(view.table.benchmark, []).append(view)
    for name in sorted(views_by_benchmark):
        context = partial(_make_context, site, name, views_by_benchmark[name])
        yield Page(make_benchmark_path(name), "benchmark.html", context)


def _make_context(site: Site, name: str, views: list[TableView]) -> dict[str, Any]:
    now = [view for view in views if view.table.current]
    main = (now or views)[0]
    return {
        "board": site.snapshot,
        "name": name,
        "kind": main.table.kind,
        "title": main.table.title,
        "what": WHAT[main.table.kind],
        "now": now,
        "old": [view for view in views if not view.table.current],
        "gone": [entry for entry in site.snapshot.apart if entry.score.benchmark == name],
        "figures": _make_figures(main),
        "figured": main.table.heading if len(views) > 1 else "",
        **_describe_benchmark(load_benchmarks().get(name)),
    }


def _make_figures(view: TableView) -> list[Figure]:
    """Return the figures of a table's entries."""
    scores = [row.standing.score for row in view.rows]
    names = [format_model_name(row.standing) for row in view.rows]
    times = [row.standing.time for row in view.rows]
    figures = (
        make_scatter_figure(scores, names),
        make_severity_figure(scores, names, describe_severity_axis(view.table.benchmark)),
        make_history_figure(times, scores, names),
    )
    return [figure for figure in figures if figure is not None]


def _describe_benchmark(benchmark: Benchmark | None) -> dict[str, Any]:
    """Return the contents of a benchmark's definition and its split's manifest; empty for an unknown benchmark."""
    if benchmark is None:
        return {
            **dict.fromkeys(("credit", "rule", "split", "split_page", "notes", "summary"), ""),
            **dict.fromkeys(("facts", "audit", "references", "papers"), ()),
            "examples": None,
            "no_examples": "This version of Farshift does not know the benchmark.",
        }
    manifest = benchmark.manifest
    definition, audit = manifest.definition, manifest.audit()
    examples, why = find_examples(benchmark)
    return {
        "rule": _format_rule(_describe_rule(definition.rule), definition.parameters),
        "split": manifest.full_name,
        "split_page": f"splits/{definition.name}/v{definition.version}.html",
        "notes": " ".join(note for note in (benchmark.definition.notes, definition.notes) if note),
        "facts": _list_facts(benchmark),
        "audit": make_audit_figures(audit, benchmark.definition.task.names),
        "summary": manifest.audit_summary(),
        "references": benchmark.definition.references,
        "papers": definition.references,
        "examples": examples,
        "credit": format_credit(benchmark) if examples else "",
        "no_examples": why,
    }


@cache
def _describe_rule(name: str) -> str:
    """Return the first sentence of a rule's description; empty for an unknown rule."""
    try:
        return find_rule(name).title
    except FarshiftError:
        return ""


def _format_rule(title: str, parameters: Mapping[str, Any]) -> str:
    """Return a rule's sentence with the values of its short parameters, to be placed after a colon."""

    def substitute(name: re.Match[str]) -> str:
        parameter = parameters.get(name[1], name[1])
        return str(parameter) if isinstance(parameter, str | int | float) and len(str(parameter)) <= 40 else name[1]

    sentence = re.sub(r"`(\w+)`", substitute, title).replace("`", "")
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def _list_facts(benchmark: Benchmark) -> list[tuple[str, str]]:
    definition, task = benchmark.manifest.definition, benchmark.definition.task
    rows = ", ".join(f"{part} {pin.rows:,}" for part, pin in definition.parts.items())
    protocol = benchmark.definition.protocol
    facts = [
        ("Task", f"{task.type}: {', '.join(task.inputs)} to {task.label}"),
        ("Rows", rows),
        ("Metric", benchmark.metrics[0].signature),
        ("Seeds", f"{protocol.seeds} (quick budget: {protocol.quick_seeds})"),
        ("Selection", ", ".join(protocol.selection)),
        ("Severity", _format_axis(definition.severity)),
        ("Groups", _format_axis(definition.group)),
        ("Licence of the data", definition.licence),
    ]
    return [(term, text) for term, text in facts if text]


def _format_axis(axis: Any) -> str:
    return "" if axis is None else f"{axis.name} ({axis.unit})" if axis.unit else str(axis.name)
