"""Records as lines on stdout: of a manifest, and of what is around it (split_page.py)."""

from __future__ import annotations

import json
from collections.abc import Sized
from typing import Any

from ..core.errors import shorten_list
from .terminal import format_estimate, print_line, print_table, print_wrapped


def print_related(related: dict[str, Any]) -> None:
    if fields := related.get("fields"):
        rows = [[field["name"], field["type"], field["role"]] for field in fields]
        print_table("", ["field", "type", "role"], rows[:_MOST], _format_more(fields))
        for field in fields:
            if names := field.get("names"):
                named = [f"{index} {name}" for index, name in enumerate(names)]
                print_wrapped(f"classes of {field['name']}: {shorten_list(named)}", 4)
    for origin in related.get("origins", ()):
        print_wrapped(f"from: {origin}", 4)
    if accept := related.get("accept"):
        print_line(f"licence to accept: {accept}")
    for benchmark in related["benchmarks"]:
        best = benchmark.get("best")
        best_text = f"; best recorded OOD: {best['model']} {_format_best(best)}" if best else ""
        print_wrapped(f"benchmark: {benchmark['benchmark']}{best_text}", 4)
    for part, row in related.get("example_rows", {}).items():
        print_line(f"example row of {part}:")
        print_record(dict(list(row.items())[:_MOST]), "    ")
        if rest := _format_more(row):
            print_line(f"    {rest}")


_MOST = 12
"""Fields of a table, or of an example row, that are shown."""


def _format_more(fields: Sized) -> str:
    return f"and {len(fields) - _MOST} more (--json lists all)" if len(fields) > _MOST else ""


def print_record(record: dict[str, Any], indent: str = "") -> None:
    """A record on stdout, a line a value, without what is empty; records that hold more than values are indented."""
    for key, value in _drop_empty(record).items():
        if isinstance(value, dict) and any(isinstance(inner, dict | list) for inner in value.values()):
            print_line(f"{indent}{key}:")
            print_record(value, indent + "    ")
        elif isinstance(value, dict):
            pairs = ", ".join(f"{name} = {inner}" for name, inner in value.items())
            print_wrapped(f"{indent}{key}: {pairs}", len(indent) + 4)
        else:
            print_wrapped(
                f"{indent}{key}: {_format_list(value) if isinstance(value, list) else value}", len(indent) + 4
            )


def _format_list(values: list[Any]) -> str:
    """A list as TOML has it, to be copied; prose one after another."""
    if any(isinstance(value, str) and " " in value for value in values):
        return "; ".join(map(str, values))
    return json.dumps(values, ensure_ascii=False)


def _drop_empty(record: dict[str, Any]) -> dict[str, Any]:
    result = {key: _drop_empty(value) if isinstance(value, dict) else value for key, value in record.items()}
    return {key: value for key, value in result.items() if value not in ("", [], {})}


def drop_false(record: dict[str, Any]) -> dict[str, Any]:
    result = {key: drop_false(value) if isinstance(value, dict) else value for key, value in record.items()}
    return {key: value for key, value in result.items() if value is not False}


def _format_best(best: dict[str, Any]) -> str:
    from ..baselines.running.recorded_scores import RecordedScore

    return format_estimate(best["ood"], RecordedScore.from_dict(best).in_percent)
