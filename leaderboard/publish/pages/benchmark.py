"""A page for every benchmark that has entries: what shifts, its tables, and figures of its main table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ....benchmarks.benchmark import Benchmark, benchmarks
from ....core.errors import FarshiftError
from ....splits.pages.rule_docs import find_rule
from ...tables.suite_table import who
from ...tables.table_view import TableView
from ..examples import examples_of
from ..figures.audit import audit_figures
from ..figures.drawing import Figure
from ..figures.history import history
from ..figures.scatter import scatter
from ..figures.severity import severity_curves
from ..leaders import WHAT
from ..page import Page
from ..page_pictures import axis_of
from ..shown_rows import credit_of

if TYPE_CHECKING:
    from ..site import Site


def place(benchmark: str) -> str:
    """Where the page of a benchmark lies."""
    return f"benchmarks/{benchmark}.html"


def pages(site: Site) -> Iterator[Page]:
    """The pages of all benchmarks with a table."""
    found: dict[str, list[TableView]] = {}
    for view in site.snapshot.views:
        found.setdefault(view.table.benchmark, []).append(view)
    for name in sorted(found):
        context = partial(_context, site, name, found[name])
        yield Page(place(name), "benchmark.html", context)


def _context(site: Site, name: str, views: list[TableView]) -> dict[str, Any]:
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
        "gone": [one for one in site.snapshot.apart if one.score.benchmark == name],
        "figures": _figures(main),
        "figured": main.table.heading if len(views) > 1 else "",
        **_known(benchmarks().get(name)),
    }


def _figures(view: TableView) -> list[Figure]:
    """What a table's entries can be drawn as."""
    scores = [row.standing.score for row in view.rows]
    names = [who(row.standing) for row in view.rows]
    times = [row.standing.time for row in view.rows]
    found = (
        scatter(scores, names),
        severity_curves(scores, names, axis_of(view.table.benchmark)),
        history(times, scores, names),
    )
    return [one for one in found if one is not None]


def _known(benchmark: Benchmark | None) -> dict[str, Any]:
    """What a benchmark's definition and its split's manifest say; empty for one that this version does not know."""
    if benchmark is None:
        return {
            **dict.fromkeys(("credit", "rule", "split", "split_page", "notes", "summary"), ""),
            **dict.fromkeys(("facts", "audit", "references", "papers"), ()),
            "examples": None,
            "no_examples": "This version of Farshift does not know the benchmark.",
        }
    manifest = benchmark.manifest
    definition, audit = manifest.definition, manifest.audit()
    examples, why = examples_of(benchmark)
    return {
        "rule": _in_words(_rule(definition.rule), definition.parameters),
        "split": manifest.full_name,
        "split_page": f"splits/{definition.name}/v{definition.version}.html",
        "notes": " ".join(one for one in (benchmark.definition.notes, definition.notes) if one),
        "facts": _facts(benchmark),
        "audit": audit_figures(audit, benchmark.definition.task.names),
        "summary": manifest.audit_summary(),
        "references": benchmark.definition.references,
        "papers": definition.references,
        "examples": examples,
        "credit": credit_of(benchmark) if examples else "",
        "no_examples": why,
    }


@cache
def _rule(name: str) -> str:
    """The first sentence of a rule's description; empty where the rule is not known here."""
    try:
        return find_rule(name).title
    except FarshiftError:
        return ""


def _in_words(title: str, parameters: Mapping[str, Any]) -> str:
    """A rule's sentence with the values of its parameters, where they are short, to go on after a colon."""

    def value(name: re.Match[str]) -> str:
        found = parameters.get(name[1], name[1])
        return str(found) if isinstance(found, str | int | float) and len(str(found)) <= 40 else name[1]

    said = re.sub(r"`(\w+)`", value, title).replace("`", "")
    return said if said[1:2].isupper() else said[:1].lower() + said[1:]


def _facts(benchmark: Benchmark) -> list[tuple[str, str]]:
    definition, task = benchmark.manifest.definition, benchmark.definition.task
    rows = ", ".join(f"{part} {pin.rows:,}" for part, pin in definition.parts.items())
    protocol = benchmark.definition.protocol
    found = [
        ("Task", f"{task.type}: {', '.join(task.inputs)} to {task.label}"),
        ("Rows", rows),
        ("Metric", benchmark.metrics[0].signature),
        ("Seeds", f"{protocol.seeds} (quick budget: {protocol.quick_seeds})"),
        ("Selection", ", ".join(protocol.selection)),
        ("Severity", _described(definition.severity)),
        ("Groups", _described(definition.group)),
        ("Licence of the data", definition.licence),
    ]
    return [(term, said) for term, said in found if said]


def _described(one: Any) -> str:
    return "" if one is None else f"{one.name} ({one.unit})" if one.unit else str(one.name)
