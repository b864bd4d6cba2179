"""A page for each split with entries on the board, from its manifest alone, and their list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...benchmarks.benchmark import load_benchmarks
from ...core.errors import FarshiftError
from ...loaders.acquire.source import find_source
from ...loaders.freezing.diff import diff_definitions
from ...splits.catalogue import find_manifests
from ...splits.manifest import Manifest
from ..tables.table import Table
from .page import Page, SiteData

BEST = 3
"""Number of entries of each table that the page shows."""

MOST_NUMBERS, LONGEST = 80, 300
"""Maximum numbers of an audit's numbers, and of characters of a parameter, on a page."""

_LONG = ("shares", "severity_histogram", "transition", "severity", "quantiles", "rows", "split", "kind", "holds", "why")
"""Parts of an audit that are shown elsewhere or are too long for the list of numbers."""


def list_pages(site: SiteData) -> Iterator[Page]:
    """Yield the pages of all splits of the board's tables, by name and version, and their list."""
    used: dict[str, tuple[Manifest, list[Table]]] = {}
    for view in site.snapshot.views:
        manifest = find_benchmark_manifest(view.benchmark)
        if manifest is not None:
            used.setdefault(manifest.full_name, (manifest, []))[1].append(view)
    rows = [(manifest, make_split_path(manifest), views) for _, (manifest, views) in sorted(used.items())]
    yield Page("splits/index.html", "split_list.html", lambda: {"rows": rows})
    for manifest, path, views in rows:
        yield Page(path, "split.html", partial(_make_context, manifest, views))


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


def _make_context(manifest: Manifest, views: Sequence[Table]) -> dict[str, Any]:
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
        "versions": _list_versions(manifest),
        "code": f'import farshift as fs\n\ntrain = fs.load("{manifest.full_name}", part="{part}")',
        "over": sorted(name for name, known in load_benchmarks().items() if known.definition.split in names),
        "tables": [(view, view.rows[:BEST]) for view in views if view.current],
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
        if (not before and name in _LONG) or name in ("shares", "quantiles"):
            continue
        if isinstance(value, Mapping):
            yield from _iterate_audit_numbers(value, label)
        elif isinstance(value, int | float | str):
            yield label, f"{value:.4g}" if isinstance(value, float) else _format_line(value)


def _list_versions(manifest: Manifest) -> list[dict[str, Any]]:
    """Return all versions of a split, the newest first, with the number of rows and the changes since the previous
    one."""
    every = find_manifests(manifest.name)
    records: list[dict[str, Any]] = []
    for before, version in zip([None, *every], every, strict=False):
        rows = sum(pin.rows for pin in version.definition.parts.values())
        changes = [] if before is None else list(_list_changes(before, version))
        records.append({"manifest": version, "rows": rows, "before": before, "changes": changes})
    return records[::-1]


def _list_changes(before: Manifest, after: Manifest) -> Iterator[str]:
    """Yield what changed between two versions: the rows of their parts, and their definitions."""
    old, new = before.definition.parts, after.definition.parts
    for name in sorted({*old, *new}):
        if name not in old or name not in new or old[name].digest != new[name].digest:
            counts = [parts[name].rows if name in parts else 0 for parts in (old, new)]
            yield f"{name}: different rows, {counts[0]:,} before, {counts[1]:,} after"
    for name, (old_value, new_value) in diff_definitions(before, after).items():
        yield f"{name}: {_format_line(old_value)} → {_format_line(new_value)}"


def _format_line(value: Any) -> str:
    """Format a value on one line, truncated if long."""
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
