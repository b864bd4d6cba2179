"""A page for each split with entries on the board, from its manifest alone, and their list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ...benchmarks.benchmark import load_benchmarks
from ...core.errors import FarshiftError
from ...loaders.acquire.source import find_source
from ...splits.catalogue import find_manifests
from ...splits.manifest import Manifest
from ..tables.snapshot import Snapshot
from ..tables.table import Table
from .page import Page

MOST_NUMBERS, LONGEST = 80, 300
"""Maximum numbers of an audit's numbers, and of characters of a parameter, on a page."""

_LONG = ("severity_histogram", "transition", "severity", "quantiles", "rows", "split", "kind", "holds", "why")
"""Parts of an audit that are shown elsewhere or are too long for the list of numbers."""


def list_pages(board: Snapshot) -> Iterator[Page]:
    """Yield the pages of all splits of the board's tables, by name and version, and their list."""
    used: dict[str, tuple[Manifest, list[Table]]] = {}
    for table in board.views:
        manifest = find_benchmark_manifest(table.benchmark)
        if manifest is not None:
            used.setdefault(manifest.full_name, (manifest, []))[1].append(table)
    rows = [(manifest, make_split_path(manifest), tables) for _, (manifest, tables) in sorted(used.items())]
    yield Page("splits/index.html", "split_list.html", lambda: {"rows": rows})
    for manifest, path, _ in rows:
        yield Page(path, "split.html", partial(_make_context, manifest))


def make_split_path(manifest: Manifest) -> str:
    """Return the path of a split's page."""
    return f"splits/{manifest.name}/v{manifest.definition.version}.html"


def find_benchmark_manifest(benchmark: str) -> Manifest | None:
    """Return the manifest of a benchmark's split; None if this version does not know the benchmark or the split."""
    known = load_benchmarks().get(benchmark)
    try:
        return None if known is None else known.manifest
    except FarshiftError:
        return None


def _make_context(manifest: Manifest) -> dict[str, Any]:
    definition, audit = manifest.definition, manifest.audit()
    part = "train" if "train" in definition.parts else next(iter(definition.parts), "train")
    names = manifest.full_name, manifest.name
    return {
        "manifest": manifest,
        "d": definition,
        "parameters": [(name, _format_line(value)) for name, value in sorted(definition.parameters.items())],
        "source": _find_source_definition(manifest),
        "audit": audit,
        "severity": [item for item in audit.get("severity", {}).items() if isinstance(item[1], Mapping)],
        "numbers": list(_iterate_audit_numbers(audit))[:MOST_NUMBERS],
        "versions": find_manifests(manifest.name)[::-1],
        "code": f'import farshift as fs\n\ntrain = fs.load("{manifest.full_name}", part="{part}")',
        "over": sorted(name for name, known in load_benchmarks().items() if known.definition.split in names),
    }


def _find_source_definition(manifest: Manifest) -> Any:
    """Return the definition of a split's source; None if this version does not know it."""
    try:
        return find_source(manifest.definition.source.name).definition
    except FarshiftError:
        return None


def _iterate_audit_numbers(audit: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the scalar values of an audit as (name, value), in the audit's order."""
    for name, value in audit.items():
        label = f"{before}, {name.replace('_', ' ')}" if before else name.replace("_", " ")
        if (not before and name in _LONG) or name == "quantiles":
            continue
        if isinstance(value, Mapping):
            yield from _iterate_audit_numbers(value, label)
        elif isinstance(value, int | float | str):
            yield label, f"{value:.4g}" if isinstance(value, float) else _format_line(value)


def _format_line(value: Any) -> str:
    """Format a value on one line, truncated if long."""
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
