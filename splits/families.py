"""Families of splits: what listings show on one line, and headline counts count once.

The grid of label noise has a split for each rate and draw of one rule over one source: one family, named SOURCE/RULE.
Every other split is a family of its own, with all its versions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..core.listings.plural import format_count
from .manifest import SplitDefinition

Record = dict[str, Any]

_RATES = ("rate", "transitions")
"""The parameters that say how many labels a rule of noise makes wrong."""

_DRAW = re.compile(r"_draw\d+$")


def get_family(definition: SplitDefinition) -> str:
    """The family that a split is of, such as `mnist/pair_flip` of `mnist/pair_flip_20_draw1`; else its own name."""
    if definition.kind == "corrupted-label" and any(name in definition.parameters for name in _RATES):
        return f"{definition.source.name}/{definition.rule.rpartition('/')[2]}"
    return definition.name


def strip_draw(name: str) -> str:
    """The name of the family of draws that a split or benchmark is of: its name up to `_draw1`, `_draw2` .."""
    return _DRAW.sub("", name)


def group_by_family(records: Sequence[Record]) -> list[list[Record]]:
    """Records of the catalogue's listing, those of a family together: the newest versions first."""
    families: dict[str, list[Record]] = {}
    for record in records:
        families.setdefault(record["family"], []).append(record)
    return [sorted(members, key=lambda record: -record["version"]) for members in families.values()]


def format_family_name(members: Sequence[Record]) -> str:
    """How a listing names a family: its first split, and how many there are beside it."""
    first, *others = members
    name = f"{first['name']}@{first['version']}"
    if not others:
        return name
    return f"{name} and {len(others)} {'older' if others[-1]['name'] == first['name'] else 'more'}"


def format_headline(records: Sequence[Record]) -> str:
    """How many families, manifests and sources records of the listing are of: `12 families (80 manifests) over 9
    sources`."""
    families, sources = ({record[key] for record in records} for key in ("family", "source"))
    counts = (
        f"{format_count(len(families), 'family', 'families')} ({format_count(len(records), 'manifest', 'manifests')})"
    )
    return f"{counts} over {format_count(len(sources), 'source', 'sources')}"
