"""Comparison of two to five entries of one table, as plain records: pairwise differences, and on which rows they occur.

Each pair's OOD difference has two intervals, which answer two questions. The interval of the table's max-t rule holds
for all pairs of the table simultaneously; the rank sets are derived from it. The pairwise t interval is for this pair
alone, and is valid for a pair that was chosen before any score was known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.statistics.interval import estimate_gap_difference, estimate_paired_difference
from ...benchmarks.statistics.paired_test import run_paired_t
from ...benchmarks.statistics.sample import RowScores
from ..tables.row_frame import Frame, ViewFrame
from ..tables.row_scores import EntryRows
from ..tables.table_view import Row, TableView

MOST = 5
"""Maximum number of entries in a comparison."""

GROUPS, EXAMPLES = 20, 10
"""Numbers of groups (those that differ most) and of rows per category that are shown."""


@dataclass(frozen=True)
class Comparison:
    """The content of a comparison page. pairs: a record for each difference; severities, groups: where a pair differs;
    groups_of: the total number of groups; rows: categories of rows with examples; lacking: what cannot be shown, and
    why."""

    view: TableView
    entries: tuple[Row, ...]
    pairs: tuple[dict[str, Any], ...]
    severities: tuple[dict[str, Any], ...] = ()
    groups: tuple[dict[str, Any], ...] = ()
    groups_of: int = 0
    rows: tuple[dict[str, Any], ...] = ()
    lacking: tuple[str, ...] = field(default=())


def compare_entries(
    view: TableView, entries: Sequence[Row], rows: Mapping[str, EntryRows], frame: Frame | None
) -> Comparison:
    """Compare entries of a table. rows: the row scores of each entry, if known; frame: the ids and groups of these
    rows."""
    pairs = tuple(_compare_pair(view, left, right, rows) for left, right in combinations(entries, 2))
    entry_rows = [rows.get(item.standing.entry) for item in entries]
    if any(item is None for item in entry_rows):
        why = next((f": {item.unranked}" for item in entries if item.unranked and item.standing.entry not in rows), "")
        return Comparison(view, tuple(entries), pairs, lacking=(f"The row scores are not available here{why}.",))
    samples = [item.ood for item in entry_rows if item is not None]
    if not all(isinstance(item, RowScores) for item in samples):
        reason = (
            f"{view.table.metric} is not a mean over rows, so the difference cannot be attributed to rows or groups."
        )
        return Comparison(view, tuple(entries), pairs, lacking=(reason,))
    scored = [item for item in samples if isinstance(item, RowScores)]
    if frame is None or len(frame["ood"].row_ids) != scored[0].rows:
        reason = "The benchmark's data were not available where this page was made, so groups and rows are not named."
        return Comparison(
            view, tuple(entries), pairs, rows=_classify_rows(view, entries, scored, None), lacking=(reason,)
        )
    groups = _compare_groups(scored, frame["ood"], entries)
    return Comparison(
        view,
        tuple(entries),
        pairs,
        _compare_severities(entries, [item for item in entry_rows if item is not None], frame)
        if len(entries) == 2
        else (),
        groups[:GROUPS],
        len(groups),
        _classify_rows(view, entries, scored, frame["ood"].row_ids),
    )


def _compare_pair(view: TableView, left: Row, right: Row, rows: Mapping[str, EntryRows]) -> dict[str, Any]:
    """Return left minus right. `max_t`: by the table's rule; `t`: ID, OOD and gap by the pairwise t interval; p: of
    OOD."""
    names = [left.standing.entry, right.standing.entry]
    record: dict[str, Any] = {"left": left, "right": right, "max_t": None, "t": {}, "p": None}
    if view.pairs is not None:
        record["max_t"] = view.pairs.apart(*names)
    if all(name in rows for name in names):
        x, y = (rows[name] for name in names)
        differences = {
            "ood": estimate_paired_difference(x.ood, y.ood),
            "id": estimate_paired_difference(x.id, y.id),
            "gap": estimate_gap_difference((x.id, x.ood), (y.id, y.ood)),
        }
        record["t"] = {name: difference.to_dict() for name, difference in differences.items() if difference.defined}
        if "ood" in record["t"]:
            record["p"] = float(f"{run_paired_t(x.ood, y.ood)[0]:.6g}")
    return record


def _compare_severities(entries: Sequence[Row], rows: Sequence[EntryRows], frame: Frame) -> tuple[dict[str, Any], ...]:
    """Return left minus right at each severity of the curve, each with a separate interval."""
    records = []
    for point in entries[0].standing.score.severity:
        severity = frame[point.view].severity
        samples = [getattr(sample, point.view) for sample in rows]
        if severity is None or not all(
            isinstance(sample, RowScores) and sample.rows == len(severity) for sample in samples
        ):
            continue
        in_range = (severity >= point.first) & (severity <= point.last)
        if in_range.any():
            difference = estimate_paired_difference(*(sample.select(in_range) for sample in samples))
            if difference.defined:
                records.append({"point": point, "rows": int(in_range.sum()), **_select_interval(difference.to_dict())})
    return tuple(records)


def _compare_groups(
    samples: Sequence[RowScores], frame: ViewFrame, entries: Sequence[Row]
) -> tuple[dict[str, Any], ...]:
    """Return each group with the value of every entry, sorted by the largest difference between entries. For two
    entries, the first `GROUPS` groups have the difference with its interval."""
    if frame.group is None or len(frame.names) < 2:
        return ()
    counts = np.bincount(frame.group, minlength=len(frame.names))
    values = np.stack(
        [
            np.bincount(frame.group, sample.scores.mean(axis=0), len(frame.names)) / np.maximum(counts, 1)
            for sample in samples
        ]
    )
    values = np.round(values, 6) + 0.0
    width = np.round(values.max(axis=0) - values.min(axis=0), 6)
    records: list[dict[str, Any]] = []
    for k in sorted(np.flatnonzero(counts).tolist(), key=lambda k: (-width[k], frame.names[k])):
        record = {"group": frame.names[k], "rows": int(counts[k]), "values": values[:, k].tolist(), "difference": None}
        if len(entries) == 2 and len(records) < GROUPS:
            difference = estimate_paired_difference(*(sample.select(frame.group == k) for sample in samples))
            record["difference"] = _select_interval(difference.to_dict()) if difference.defined else None
        records.append(record)
    return tuple(records)


def _classify_rows(
    view: TableView, entries: Sequence[Row], samples: Sequence[RowScores], ids: NDArray[np.uint64] | None
) -> tuple[dict[str, Any], ...]:
    """Count categories of OOD rows. With 0/1 scores (correct means correct in more than half of the seeds): rows that
    all entries, no entry, only one entry, and all but one entry have correct. Else: rows on which each entry is
    best."""
    means = np.stack([item.scores.mean(axis=0) for item in samples])
    sorts: list[tuple[str, NDArray[np.bool_], bool]]
    if view.table.better == "lower":
        means = -means
    if all(np.isin(item.scores, (0.0, 1.0)).all() for item in samples) and view.table.better == "higher":
        right = means > 0.5
        every, some = np.logical_and.reduce(right), np.logical_or.reduce(right)
        sorts = [("all are correct", every, False), ("none is correct", ~some, False)]
        for k, item in enumerate(entries):
            others = np.delete(right, k, axis=0)
            name = item.standing.score.model
            sorts.append((f"only {name} is correct", right[k] & ~np.logical_or.reduce(others), True))
            if len(entries) > 2:
                sorts.append((f"only {name} is wrong", ~right[k] & np.logical_and.reduce(others), True))
    else:
        top = means == means.max(axis=0)
        sorts = [("all score the same", np.logical_and.reduce(top), False)]
        for k, item in enumerate(entries):
            sorts.append((f"only {item.standing.score.model} scores best", top[k] & (top.sum(axis=0) == 1), True))
    spread = np.round(means.max(axis=0) - means.min(axis=0), 6)
    return tuple(_make_row_category(words, mask, spread, ids if with_ids else None) for words, mask, with_ids in sorts)


def _make_row_category(
    words: str, mask: NDArray[np.bool_], spread: NDArray[np.float64], ids: NDArray[np.uint64] | None
) -> dict[str, Any]:
    """Return a category of rows: its description, its count, and the ids of the rows with the largest differences."""
    chosen = np.flatnonzero(mask) if ids is not None else np.array([], np.int64)
    if ids is None or not spread[chosen].any():
        return {"words": words, "count": int(mask.sum()), "rows": ()}
    order = sorted(chosen.tolist(), key=lambda k: (-spread[k], int(ids[k])))[:EXAMPLES]
    return {"words": words, "count": int(mask.sum()), "rows": tuple(int(ids[k]) for k in order)}


def _select_interval(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("value", "low", "high")}
