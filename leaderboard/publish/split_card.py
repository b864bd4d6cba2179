"""What a split's page says of it, from its manifest alone: no row is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...core.errors import BadData, FarshiftError
from ...loaders.acquire.source import find_source
from ...loaders.freezing.diff import rows_changed, said_otherwise
from ...splits.catalogue import named
from ...splits.manifest import Manifest

MOST_FIGURES, LONGEST = 80, 300
"""The most figures of an audit, and characters of a parameter, that a page shows."""

_LONG = ("shares", "severity_histogram", "transition", "severity", "quantiles", "rows", "split", "kind", "holds", "why")
"""Parts of an audit that are shown otherwise, or are too long for a line each."""

_CHANGES = {
    "added": "rows added",
    "removed": "rows removed",
    "changed": "rows of other content under the same inputs",
    "weight": "rows of another weight",
    "group": "rows of another group",
    "severity": "rows of another severity",
    "label": "rows of another label",
}


def split_card(manifest: Manifest) -> dict[str, Any]:
    """Plain records of a manifest: its parts, its source, its audit, and what changed between its versions."""
    definition = manifest.definition
    audit = manifest.audit()
    return {
        "manifest": manifest,
        "d": definition,
        "parameters": [(name, in_a_line(value)) for name, value in sorted(definition.parameters.items())],
        "parts": [(name, pin) for name, pin in definition.parts.items()],
        "source": source_of(manifest),
        "audit": audit,
        "severity": [(part, found) for part, found in audit.get("severity", {}).items() if isinstance(found, Mapping)],
        "figures": list(figures(audit))[:MOST_FIGURES],
        "versions": versions(manifest),
        "code": f'import farshift as fs\n\ntrain = fs.load("{manifest.full_name}", part="{first_part(manifest)}")',
    }


def first_part(manifest: Manifest) -> str:
    """The part that an example loads: training, where there is one."""
    parts = list(manifest.definition.parts)
    return "train" if "train" in parts or not parts else parts[0]


def source_of(manifest: Manifest) -> dict[str, str] | None:
    """Title, licence, citation and homepage of a split's source; None where it is not known here."""
    try:
        source = find_source(manifest.definition.source.name).definition
    except FarshiftError:
        return None
    return {name: str(getattr(source, name)) for name in ("title", "licence", "citation", "homepage")}


def figures(audit: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """The single numbers of an audit: (what, value) each, in its own order."""
    for name, value in audit.items():
        place = f"{before}, {name.replace('_', ' ')}" if before else name.replace("_", " ")
        if (not before and name in _LONG) or name in ("shares", "quantiles"):
            continue
        if isinstance(value, Mapping):
            yield from figures(value, place)
        elif isinstance(value, bool | int | str):
            yield place, in_a_line(value)
        elif isinstance(value, float):
            yield place, f"{value:.4g}"


def versions(manifest: Manifest) -> list[dict[str, Any]]:
    """Every version of a split, the newest first: its rows in all, and how it differs from the one before."""
    every = named(manifest.name)
    found: list[dict[str, Any]] = []
    for before, one in zip([None, *every], every, strict=False):
        rows = sum(pin.rows for pin in one.definition.parts.values())
        said = {"manifest": one, "rows": rows, "before": None, "said": [], "counts": [], "moves": None}
        if before is not None:
            said |= {
                "before": before,
                "said": [
                    (name, in_a_line(old), in_a_line(new)) for name, (old, new) in said_otherwise(before, one).items()
                ],
                "counts": list(_counts(before, one)),
                "moves": _moves(before, one),
            }
        found.append(said)
    return found[::-1]


def _counts(before: Manifest, after: Manifest) -> Iterator[tuple[str, int, int]]:
    """The parts whose rows are not the same: (part, rows before, rows after)."""
    old, new = before.definition.parts, after.definition.parts
    for name in sorted({*old, *new}):
        if name not in old or name not in new or old[name].digest != new[name].digest:
            yield name, old[name].rows if name in old else 0, new[name].rows if name in new else 0


def _moves(before: Manifest, after: Manifest) -> list[tuple[str, int]] | None:
    """Which rows moved, of two manifests that have their rows with them; None where a rule makes them of data."""
    if not (before.definition.ships_rows and after.definition.ships_rows):
        return None
    try:
        found = rows_changed(before.shipped(), after.shipped())
    except BadData:
        return None
    moved = [(f"rows moved {pair}", item["rows"]) for pair, item in found["moved"].items()]
    return moved + [(words, found[name]["rows"]) for name, words in _CHANGES.items() if found[name]["rows"]]


def in_a_line(value: Any) -> str:
    """A value in one line, cut where it is long."""
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."
