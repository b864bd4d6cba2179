"""Output of the sealed-test commands about a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.listings.plural import format_count
from .terminal import emit_json, print_line, print_table


def print_window(window: Any, board: Path, json: bool) -> None:
    """Print the announcement of a window, and the profile of its test."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.results import read_profile

    profile = read_profile(Board(board), window)
    if json:
        record = {"window": window.terms.record(), "commitment": window.commitment, "opened": window.opened}
        return emit_json({**record, "profile": profile})
    print_line(f"{window.name}: from {window.terms.opens} to {window.terms.closes}, commitment {window.commitment}")
    print_line(f"seed: {window.sources}")
    _print_profile(profile or {})
    print_line(f"Write the test for entrants: farshift board sealed draw {window.name} --board {board} --out DIR")


def _print_profile(profile: dict[str, Any]) -> None:
    rows = []
    for view, counts in profile.items():
        left = f"{counts['left_out']['rows']} of {counts['public_rows']}"
        measures = [
            f"{name} D = {measure['distance']:.3f}, p = {measure['p']:.2f}"
            for name, measure in counts["measures"].items()
        ]
        rows.append(
            [
                view,
                counts["rows"],
                len(counts["cells"]),
                "yes" if counts["equal"] else "NO",
                left,
                ", ".join(measures),
            ]
        )
    columns = ["view", "rows", "cells", "equal to public", "public rows left out", "Kolmogorov-Smirnov against public"]
    print_table("", columns, rows)


def print_results(window_results: dict[str, Any]) -> None:
    """Print a window and, once it is closed, the scores of its answers beside the public scores."""
    from ..benchmarks.scoring.record import format_estimate
    from ..benchmarks.statistics.interval import read_interval

    terms = window_results["terms"]
    answers = format_count(window_results["answers"], "answer")
    print_line(f"{terms['window']}: {window_results['state']}, from {terms['opens']} to {terms['closes']}, {answers}")
    print_line(f"seed: {window_results['randomness']}")
    if window_results["profile"] is not None:
        _print_profile(window_results["profile"])
    rows = []
    for entry in window_results["entries"]:
        if entry["n/a"]:
            rows.append([entry["team"], entry["model"], f"n/a ({entry['n/a']})", "", "", "", ""])
            continue
        score, contrast = entry["score"], entry["contrast"]
        equal = f" (equal to {entry['equal_to']}'s)" if entry["equal_to"] else ""
        scores = [format_estimate(read_interval(score[view])) for view in ("id", "ood")]
        differences = [_format_difference(contrast[view]) for view in ("id", "ood")]
        flags = [f"{view} {contrast[view]['flag']}" for view in ("id", "ood") if contrast[view].get("flag")]
        rows.append([entry["team"], entry["model"] + equal, *scores, *differences, ", ".join(flags)])
    if rows:
        columns = ["team", "model", "sealed ID", "sealed OOD", "ID: public - sealed", "OOD: public - sealed", "flag"]
        caption = "95 % t intervals. A flag: p < 5 % after Holm's correction over the entries."
        print_table("", columns, rows, caption)


def _format_difference(record: dict[str, Any]) -> str:
    from ..benchmarks.statistics.interval import Interval, read_interval

    known = read_interval(record)
    return f"{known.value:+.3f} [{known.low:+.3f}, {known.high:+.3f}]" if isinstance(known, Interval) else "n/a"
