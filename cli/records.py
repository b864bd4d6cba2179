"""Records as lines on stdout: of a manifest, and of what is around it (split_page.py)."""

from __future__ import annotations

import json
from collections.abc import Sized
from typing import Any

from ..core.errors import some_of
from .terminal import line, prose, table, view


def tell_surroundings(around: dict[str, Any]) -> None:
    if fields := around.get("fields"):
        rows = [[field["name"], field["type"], field["role"]] for field in fields]
        table("", ["field", "type", "role"], rows[:_MOST], _and_more(fields))
        for field in fields:
            if names := field.get("names"):
                named = [f"{place} {name}" for place, name in enumerate(names)]
                prose(f"classes of {field['name']}: {some_of(named)}", 4)
    for origin in around.get("origins", ()):
        prose(f"from: {origin}", 4)
    if accept := around.get("accept"):
        line(f"licence to accept: {accept}")
    for one in around["benchmarks"]:
        best = one.get("best")
        told = f"; best recorded OOD: {best['model']} {_view(best)}" if best else ""
        prose(f"benchmark: {one['benchmark']}{told}", 4)
    for part, row in around.get("example_rows", {}).items():
        line(f"example row of {part}:")
        tell(dict(list(row.items())[:_MOST]), "    ")
        if more := _and_more(row):
            line(f"    {more}")


_MOST = 12
"""Fields of a table, or of an example row, that are shown."""


def _and_more(fields: Sized) -> str:
    return f"and {len(fields) - _MOST} more (--json has all)" if len(fields) > _MOST else ""


def tell(record: dict[str, Any], indent: str = "") -> None:
    """A record on stdout, a line a value, without what is empty; records that hold more than values are indented."""
    for key, value in _filled(record).items():
        if isinstance(value, dict) and any(isinstance(inner, dict | list) for inner in value.values()):
            line(f"{indent}{key}:")
            tell(value, indent + "    ")
        elif isinstance(value, dict):
            said = ", ".join(f"{name} = {inner}" for name, inner in value.items())
            prose(f"{indent}{key}: {said}", len(indent) + 4)
        else:
            prose(f"{indent}{key}: {_listed(value) if isinstance(value, list) else value}", len(indent) + 4)


def _listed(values: list[Any]) -> str:
    """A list as TOML has it, to be copied; prose one after another."""
    if any(isinstance(value, str) and " " in value for value in values):
        return "; ".join(map(str, values))
    return json.dumps(values, ensure_ascii=False)


def _filled(record: dict[str, Any]) -> dict[str, Any]:
    found = {key: _filled(value) if isinstance(value, dict) else value for key, value in record.items()}
    return {key: value for key, value in found.items() if value not in ("", [], {})}


def without_false(record: dict[str, Any]) -> dict[str, Any]:
    found = {key: without_false(value) if isinstance(value, dict) else value for key, value in record.items()}
    return {key: value for key, value in found.items() if value is not False}


def _view(best: dict[str, Any]) -> str:
    from ..baselines.running.recorded_scores import RecordedScore

    return view(best["ood"], RecordedScore.from_dict(best).in_percent)
