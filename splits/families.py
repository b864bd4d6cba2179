"""Families of splits: listings show a family on one line, and headline counts count it once.

Label noise has a split for each rate and draw of one rule over one source: one family, named SOURCE/RULE. Every other
split is its own family, with all its versions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..core.listings.plural import format_count
from .manifest import SplitDefinition

Record = dict[str, Any]

_RATES = ("rate", "transitions")
"""The parameters that set how many labels a noise rule corrupts."""

_DRAW = re.compile(r"_draw\d+$")


def get_family(definition: SplitDefinition) -> str:
    """Return the family of a split, such as `mnist/pair_flip` for `mnist/pair_flip_20_draw1`; else its own name."""
    if definition.kind == "corrupted-label" and any(name in definition.parameters for name in _RATES):
        return f"{definition.source.name}/{definition.rule.rpartition('/')[2]}"
    return definition.name


def strip_draw(name: str) -> str:
    """Return the name of a split or benchmark without its suffix `_draw1`, `_draw2` .."""
    return _DRAW.sub("", name)


def group_by_family(records: Sequence[Record]) -> list[list[Record]]:
    """Group the records of the catalogue's listing by family, the newest versions first."""
    families: dict[str, list[Record]] = {}
    for record in records:
        families.setdefault(record["family"], []).append(record)
    return [sorted(members, key=lambda record: -record["version"]) for members in families.values()]


def format_family_name(members: Sequence[Record]) -> str:
    """Return a family's name in listings: its first split, and the number of the others."""
    first, *others = members
    name = f"{first['name']}@{first['version']}"
    if not others:
        return name
    return f"{name} and {len(others)} {'older' if others[-1]['name'] == first['name'] else 'more'}"


def format_headline(records: Sequence[Record]) -> str:
    """Count the families, manifests and sources of records: `12 families (80 manifests) over 9 sources`."""
    families, sources = ({record[key] for record in records} for key in ("family", "source"))
    counts = (
        f"{format_count(len(families), 'family', 'families')} ({format_count(len(records), 'manifest', 'manifests')})"
    )
    return f"{counts} over {format_count(len(sources), 'source', 'sources')}"
