"""The content of a split's page, from its manifest alone, without reading rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.errors import BadData, FarshiftError
from ...loaders.acquire.source import find_source
from ...loaders.freezing.diff import diff_definitions, diff_rows
from ...splits.catalogue import find_manifests
from ...splits.manifest import Manifest

MOST_FIGURES, LONGEST = 80, 300
"""Maximum numbers of audit figures, and of characters of a parameter, on a page."""

_LONG = ("shares", "severity_histogram", "transition", "severity", "quantiles", "rows", "split", "kind", "holds", "why")
"""Parts of an audit that are shown elsewhere or are too long for the list of figures."""

_CHANGES = {
    "added": "rows added",
    "removed": "rows removed",
    "changed": "rows with the same inputs and other content",
    "weight": "rows with another weight",
    "group": "rows with another group",
    "severity": "rows with another severity",
    "label": "rows with another label",
}


def make_split_card(manifest: Manifest) -> dict[str, Any]:
    """Return plain records of a manifest: its parts, its source, its audit, and the changes between its versions."""
    definition = manifest.definition
    audit = manifest.audit()
    return {
        "manifest": manifest,
        "d": definition,
        "parameters": [(name, format_line(value)) for name, value in sorted(definition.parameters.items())],
        "parts": [(name, pin) for name, pin in definition.parts.items()],
        "source": describe_source(manifest),
        "audit": audit,
        "severity": [
            (part, summary) for part, summary in audit.get("severity", {}).items() if isinstance(summary, Mapping)
        ],
        "figures": list(iterate_audit_numbers(audit))[:MOST_FIGURES],
        "versions": list_versions(manifest),
        "code": (
            f'import farshift as fs\n\ntrain = fs.load("{manifest.full_name}", part="{choose_first_part(manifest)}")'
        ),
    }


def choose_first_part(manifest: Manifest) -> str:
    """Return the part that the example loads: the training part if there is one."""
    parts = list(manifest.definition.parts)
    return "train" if "train" in parts or not parts else parts[0]


def describe_source(manifest: Manifest) -> dict[str, str] | None:
    """Return title, licence, citation and homepage of a split's source; None if this version does not know it."""
    try:
        source = find_source(manifest.definition.source.name).definition
    except FarshiftError:
        return None
    return {name: str(getattr(source, name)) for name in ("title", "licence", "citation", "homepage")}


def iterate_audit_numbers(audit: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the scalar values of an audit as (name, value), in the audit's order."""
    for name, value in audit.items():
        label = f"{before}, {name.replace('_', ' ')}" if before else name.replace("_", " ")
        if (not before and name in _LONG) or name in ("shares", "quantiles"):
            continue
        if isinstance(value, Mapping):
            yield from iterate_audit_numbers(value, label)
        elif isinstance(value, bool | int | str):
            yield label, format_line(value)
        elif isinstance(value, float):
            yield label, f"{value:.4g}"


def list_versions(manifest: Manifest) -> list[dict[str, Any]]:
    """Return all versions of a split, the newest first, with the number of rows and the changes since the previous
    one."""
    every = find_manifests(manifest.name)
    records: list[dict[str, Any]] = []
    for before, version in zip([None, *every], every, strict=False):
        rows = sum(pin.rows for pin in version.definition.parts.values())
        record = {"manifest": version, "rows": rows, "before": None, "said": [], "counts": [], "moves": None}
        if before is not None:
            record |= {
                "before": before,
                "said": [
                    (name, format_line(old), format_line(new))
                    for name, (old, new) in diff_definitions(before, version).items()
                ],
                "counts": list(_iterate_changed_parts(before, version)),
                "moves": _list_moved_rows(before, version),
            }
        records.append(record)
    return records[::-1]


def _iterate_changed_parts(before: Manifest, after: Manifest) -> Iterator[tuple[str, int, int]]:
    """Return the parts whose rows differ, as (part, rows before, rows after)."""
    old, new = before.definition.parts, after.definition.parts
    for name in sorted({*old, *new}):
        if name not in old or name not in new or old[name].digest != new[name].digest:
            yield name, old[name].rows if name in old else 0, new[name].rows if name in new else 0


def _list_moved_rows(before: Manifest, after: Manifest) -> list[tuple[str, int]] | None:
    """Return which rows moved between two manifests that list their rows; None if a rule computes them from data."""
    if not (before.definition.ships_rows and after.definition.ships_rows):
        return None
    try:
        difference = diff_rows(before.shipped(), after.shipped())
    except BadData:
        return None
    moved = [(f"rows moved {pair}", item["rows"]) for pair, item in difference["moved"].items()]
    return moved + [(words, difference[name]["rows"]) for name, words in _CHANGES.items() if difference[name]["rows"]]


def format_line(value: Any) -> str:
    """Format a value on one line, truncated if long."""
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
