"""The catalogue as a page: a table for each kind of shift, and one of the definitions whose data lie elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from ..catalogue import list_manifests, list_split_records
from ..families import format_headline, get_family
from ..manifest import KINDS, Manifest

_DRAW = re.compile(r"_draw\d+$")


def render_markdown() -> str:
    """The page in Markdown. Draws of one split share a line."""
    every, records = list_manifests(), list_split_records()
    frozen = [manifest for manifest in every if manifest.frozen]
    definitions = [manifest for manifest in every if not manifest.frozen]
    lines = [
        "# The splits",
        "",
        "This page is made by `farshift splits list --markdown > docs/splits.md`. A row in full, its identity and",
        "its whole audit: `farshift splits show NAME --json`. To make your own: [own-splits.md](own-splits.md).",
        "",
        f"Frozen: {format_headline([record for record in records if record['state'] != 'definition'])}.",
        f"Definitions: {format_headline([record for record in records if record['state'] == 'definition'])}.",
        "A family is a split with all its versions, or all rates and draws of one rule of label noise over one source.",
    ]
    for kind in KINDS:
        of_kind = [manifest for manifest in frozen if manifest.definition.kind == kind]
        families = {get_family(manifest.definition) for manifest in of_kind}
        lines += ["", f"## {kind.capitalize()}: {len(families)} families ({len(of_kind)} manifests)", ""]
        lines += _format_rows(
            ("split", "rows", "what it is", "its audit"), [_format_frozen(group) for group in _group_draws(of_kind)]
        )
    lines += ["", "## Definitions: frozen where the data are first pulled", ""]
    defined = [_format_defined(manifest) for manifest in definitions]
    return "\n".join(lines + _format_rows(("split", "kind", "what it is", "licence"), defined)) + "\n"


def strip_draw(name: str) -> str:
    """The name of the family of draws that a split or benchmark is of: its name up to `_draw1`, `_draw2` .."""
    return _DRAW.sub("", name)


def _group_draws(versions: Sequence[Manifest]) -> list[list[Manifest]]:
    return [
        list(group)
        for _, group in groupby(versions, lambda manifest: (strip_draw(manifest.name), manifest.definition.version))
    ]


def _format_frozen(group: Sequence[Manifest]) -> tuple[str, ...]:
    first = group[0]
    name = f"`{first.full_name}`"
    if len(group) > 1:
        name += f" .. `{group[-1].name.rpartition('_')[2]}`"
    parts = ", ".join(f"{part} {pin.rows:,}" for part, pin in first.definition.parts.items())
    return name, parts, first.definition.title, first.audit_summary()


def _format_defined(manifest: Manifest) -> tuple[str, ...]:
    definition = manifest.definition
    return f"`{manifest.full_name}`", definition.kind, definition.title, definition.licence


def _format_rows(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
