"""Comparison of two entries of one table: their differences, and on which severities, groups and rows they occur. There
are pages for the pairs among a table's first entries, for its baseline with each of the next entries, and to choose
entries; a server makes pages for any two (`make_compare_page`).

The OOD difference has two intervals, which answer two questions. The interval of the table's max-t rule holds for all
pairs of the table simultaneously; the rank sets are derived from it. The pairwise t interval is for this pair alone,
and is valid for a pair that was chosen before any score was known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import Benchmark, find_benchmark
from ...benchmarks.statistics.interval import Estimate, estimate_gap_difference, estimate_paired_difference
from ...benchmarks.statistics.paired_test import run_paired_t
from ...benchmarks.statistics.sample import RowScores
from ...core.errors import FarshiftError, Unavailable, UnknownName
from ...core.text import drop_version
from ...loaders.part import Part
from ..board_view import BoardView
from ..tables.entry_rows import EntryRows
from ..tables.row_scores import read_entry_rows
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table
from .examples import find_benchmark_source, format_credit, is_on_disk, read_row_contents
from .figures import make_severity_figure
from .page import Frame, Page

FIRST, AGAINST = 3, 10
"""Numbers of first entries of a table that are compared in pairs, and with the baseline."""

GROUPS, EXAMPLES = 20, 10
"""Numbers of groups (those that differ most) and of rows per category that are shown."""

Pair = tuple[Row, Row]


def list_pages(board: Snapshot, view: BoardView | None) -> Iterator[Page]:
    """Yield the list of tables and, for each table, the page to choose entries and the pages of pairs."""
    tables = [table for table in board.views if table.current and len(table.rows) > 1]
    yield Page("compare/index.html", "compare_list.html", lambda: {"views": tables})
    for table in tables:
        pairs = [(left, right, make_pair_path(left, right)) for left, right in list_pairs(table)]
        context = {"view": table, "pairs": pairs, "first": FIRST, "against": AGAINST}
        yield Page(f"compare/{table.anchor}.html", "compare_choose.html", partial(dict, context))
        for left, right, path in pairs:
            yield Page(path, "compare.html", partial(_make_context, view, table, (left, right)))


def list_pairs(view: Table) -> list[Pair]:
    """Return the pairs of a table that have a page, each in the table's order."""
    if not view.current:
        return []
    pairs = set(combinations(range(min(FIRST, len(view.rows))), 2))
    base = [k for k, row in enumerate(view.rows) if view.baseline and row.standing.score.model == view.baseline][:1]
    for k in base:
        pairs |= {(min(k, other), max(k, other)) for other in range(min(AGAINST, len(view.rows))) if other != k}
    return [(view.rows[i], view.rows[j]) for i, j in sorted(pairs)]


def make_pair_path(left: Row, right: Row) -> str:
    """Return the path of a pair's comparison page."""
    return f"compare/{left.standing.entry}-{right.standing.entry}.html"


def make_compare_page(
    board: Snapshot, view: BoardView | None, entries: Sequence[str], path: str, frame: Frame | None = None
) -> Page:
    """Return the page at `path` that compares two entries of one table, given by name. Raises `FarshiftError` if they
    cannot be compared."""
    names = set(entries)
    if len(names) != 2:
        raise FarshiftError(f"choose two entries, not {len(names)}")
    tables = {row.standing.entry: table for table in board.views for row in table.rows}
    for name in names - set(tables):
        raise UnknownName("entry in a table", name[:40], tables)
    table, *others = {tables[name].identity: tables[name] for name in names}.values()
    if others:
        raise FarshiftError(f"choose entries of one table; these belong to {table.heading} and {others[0].heading}")
    left, right = (row for row in table.rows if row.standing.entry in names)
    return Page(path, "compare.html", partial(_make_context, view, table, (left, right)), frame)


def _make_context(board: BoardView | None, view: Table, pair: Pair) -> dict[str, Any]:
    rows: dict[str, EntryRows] = {}
    parts = None
    if board is not None and view.current:
        rows, _ = read_entry_rows(board, [item.standing for item in pair])
        parts = _read_parts(find_benchmark(view.benchmark))
    comparison = compare_entries(view, pair, rows, parts)
    row_ids = sorted({row_id for category in comparison["rows"] for row_id in category["rows"]})
    contents = read_row_contents(view.benchmark, row_ids)
    scores = [item.standing.score for item in pair]
    return comparison | {
        "view": view,
        "entries": pair,
        "bounds": scores[0].bounds,
        "curves": make_severity_figure(scores, [str(item.model) for item in scores]),
        "contents": contents,
        "credit": format_credit(find_benchmark(view.benchmark)) if contents else "",
        "examples": EXAMPLES,
    }


def _read_parts(benchmark: Benchmark) -> dict[str, Part] | None:
    """Return the rows of a benchmark's ID and OOD view; None if its data are not on this machine."""
    source = find_benchmark_source(benchmark)
    if source is None or (source.needs_network and not is_on_disk(source)):
        return None
    try:
        return {view: benchmark.view(view)[0] for view in ("id", "ood")}
    except Unavailable:
        return None


def compare_entries(
    view: Table, pair: Pair, rows: Mapping[str, EntryRows], parts: Mapping[str, Part] | None
) -> dict[str, Any]:
    """Compare two entries of a table: left minus right. rows: the row scores of each entry, if known; parts: these
    rows, by view. Returns the difference by the table's rule (`max_t`) and by the pairwise t interval (`t`: ID, OOD and
    gap; `p`: of OOD), where they differ (`severities`, `groups`, of `groups_of`), categories of OOD `rows` with the ids
    of those that differ most, and what is `lacking`, with the reason."""
    left, right = (item.standing.entry for item in pair)
    result: dict[str, Any] = {"max_t": view.pairs.apart(left, right) if view.pairs else None, "t": {}, "p": None}
    result |= {"severities": [], "groups": [], "groups_of": 0, "rows": [], "lacking": ""}
    if absent := [item for item in pair if item.standing.entry not in rows]:
        why = f": {absent[0].unranked}" if absent[0].unranked else ""
        return result | {"lacking": f"The row scores are not available here{why}."}
    x, y = rows[left], rows[right]
    differences = {
        "ood": estimate_paired_difference(x.ood, y.ood),
        "id": estimate_paired_difference(x.id, y.id),
        "gap": estimate_gap_difference((x.id, x.ood), (y.id, y.ood)),
    }
    result["t"] = {name: difference.to_dict() for name, difference in differences.items() if difference.defined}
    result["p"] = run_paired_t(x.ood, y.ood)[0] if "ood" in result["t"] else None
    if not isinstance(x.ood, RowScores) or not isinstance(y.ood, RowScores):
        reason = "is not a mean over rows, so the difference cannot be attributed to rows or groups."
        return result | {"lacking": f"{drop_version(view.metric)} {reason}"}
    names = [item.standing.score.model for item in pair]
    samples = x.ood, y.ood
    if parts is None or len(parts["ood"].row_ids) != x.ood.rows:
        reason = "The benchmark's data were not available where this page was made, so groups and rows are not named."
        return result | {"rows": _classify_rows(view, names, samples, None), "lacking": reason}
    groups = _compare_groups(samples, parts["ood"])
    return result | {
        "severities": _compare_severities(pair[0], (x, y), parts),
        "groups": groups[:GROUPS],
        "groups_of": len(groups),
        "rows": _classify_rows(view, names, samples, parts["ood"].row_ids),
    }


def _compare_severities(
    left: Row, rows: tuple[EntryRows, EntryRows], parts: Mapping[str, Part]
) -> list[dict[str, Any]]:
    """Return the difference at each severity of the curve, each with a separate interval."""
    records = []
    for point in left.standing.score.severity:
        severity = parts[point.view].row_metadata.get("severity")
        x, y = (getattr(item, point.view) for item in rows)
        if severity is None or not isinstance(x, RowScores) or not x.rows == y.rows == len(severity):
            continue
        in_range = (severity >= point.first) & (severity <= point.last)
        if in_range.any() and (difference := _estimate_difference((x, y), in_range)):
            records.append({"point": point, "rows": int(in_range.sum()), **difference})
    return records


def _compare_groups(samples: tuple[RowScores, RowScores], part: Part) -> list[dict[str, Any]]:
    """Return each group with the value of both entries, sorted by the difference; the first `GROUPS` groups have its
    interval."""
    labels, group = np.unique(part.row_metadata.get("group", []), return_inverse=True)
    if len(labels) < 2:
        return []
    counts = np.bincount(group)
    sums = [np.bincount(group, sample.scores.mean(axis=0)) for sample in samples]
    values = np.round(np.stack(sums) / counts, 6) + 0.0
    widths = np.round(abs(values[0] - values[1]), 6).tolist()
    order = sorted(range(len(labels)), key=lambda k: (-widths[k], str(labels[k])))
    return [
        {
            "group": str(labels[k]),
            "rows": int(counts[k]),
            "values": values[:, k].tolist(),
            "difference": _estimate_difference(samples, group == k) if number < GROUPS else None,
        }
        for number, k in enumerate(order)
    ]


def _estimate_difference(samples: Sequence[RowScores], mask: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Return the difference of two entries on some rows with its interval; None if it is not defined."""
    difference: Estimate = estimate_paired_difference(*(sample.select(mask) for sample in samples))
    return {name: difference.to_dict()[name] for name in ("value", "low", "high")} if difference.defined else None


def _classify_rows(
    view: Table, names: Sequence[str], samples: Sequence[RowScores], ids: NDArray[np.uint64] | None
) -> list[dict[str, Any]]:
    """Count categories of OOD rows. With 0/1 scores (correct means correct in more than half of the seeds): rows that
    both entries, neither, or only one has correct. Else: rows on which each entry is better. Categories in which
    entries differ have the ids of the rows with the largest differences."""
    left, right = (item.scores.mean(axis=0) for item in samples)
    if all(np.isin(item.scores, (0.0, 1.0)).all() for item in samples) and view.better == "higher":
        x, y, verb = left > 0.5, right > 0.5, "is correct"
        categories = [("both are correct", x & y), ("neither is correct", ~x & ~y)]
    else:
        x, y = (left > right, left < right) if view.better == "higher" else (left < right, left > right)
        categories, verb = [("both score the same", ~x & ~y)], "scores better"
    categories += [(f"only {names[0]} {verb}", x & ~y), (f"only {names[1]} {verb}", y & ~x)]
    spread = np.round(abs(left - right), 6)
    records = []
    for words, mask in categories:
        shown: list[int] = []
        if ids is not None and words.startswith("only"):
            order = sorted(np.flatnonzero(mask & (spread > 0)).tolist(), key=lambda k: (-spread[k], int(ids[k])))
            shown = [int(ids[k]) for k in order[:EXAMPLES]]
        records.append({"words": words, "count": int(mask.sum()), "rows": shown})
    return records
