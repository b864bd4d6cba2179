"""What the commands of sealed draws print of a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core.listings.plural import counted
from .terminal import emit_json, line, table


def tell_window(window: Any, board: Path, json: bool) -> None:
    """What was announced of a window, and the profile of its draw."""
    from ..leaderboard.board import Board
    from ..leaderboard.sealed.seal import profile_of

    profile = profile_of(Board(board), window.name)
    if json:
        said = {"window": window.terms.record(), "commitment": window.commitment, "opened": window.opened}
        return emit_json({**said, "profile": profile})
    line(f"{window.name}: from {window.terms.opens} to {window.terms.closes}, commitment {window.commitment}")
    line(f"drawn by {window.sources}")
    _tell_profile(profile)
    line(f"Hand it out: farshift board sealed draw {window.name} --board {board} --out DRAW")


def _tell_profile(profile: dict[str, Any]) -> None:
    rows = []
    for view, counts in profile.items():
        left = f"{counts['left_out']['rows']} of {counts['public_rows']}"
        measures = [f"{name} D = {one['distance']:.3f}, p = {one['p']:.2f}" for name, one in counts["measures"].items()]
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
    table("", columns, rows)


def tell_results(found: dict[str, Any]) -> None:
    """A window and, once it is closed, the scores of its answers beside the public ones."""
    from ..benchmarks.scoring.record import in_words
    from ..benchmarks.statistics.interval import read_interval

    terms = found["terms"]
    handed_in = counted(found["answers"], "answer")
    line(f"{terms['window']}: {found['state']}, from {terms['opens']} to {terms['closes']}, {handed_in}")
    line(f"drawn by {found['randomness']}")
    if found["profile"] is not None:
        _tell_profile(found["profile"])
    rows = []
    for entry in found["entries"]:
        if entry["n/a"]:
            rows.append([entry["team"], entry["model"], f"n/a ({entry['n/a']})", "", "", "", ""])
            continue
        score, contrast = entry["score"], entry["contrast"]
        equal = f" (equal to {entry['equal_to']}'s)" if entry["equal_to"] else ""
        shown = [in_words(read_interval(score[view])) for view in ("id", "ood")]
        apart = [_difference(contrast[view]) for view in ("id", "ood")]
        flags = [f"{view} {contrast[view]['flag']}" for view in ("id", "ood") if contrast[view].get("flag")]
        rows.append([entry["team"], entry["model"] + equal, *shown, *apart, ", ".join(flags)])
    if rows:
        columns = ["team", "model", "sealed ID", "sealed OOD", "ID: public - sealed", "OOD: public - sealed", "flag"]
        caption = "95 % t intervals. A flag: p < 5 % after Holm's correction over the entries."
        table("", columns, rows, caption)


def _difference(found: dict[str, Any]) -> str:
    from ..benchmarks.statistics.interval import Interval, read_interval

    known = read_interval(found)
    return f"{known.value:+.3f} [{known.low:+.3f}, {known.high:+.3f}]" if isinstance(known, Interval) else "n/a"
